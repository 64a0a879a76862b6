// Attributes of operations, as HLO has them.
#include <algorithm>
#include <cstring>

#include "lamella/graph/hlo/attribute_use.h"
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/sdy.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {
namespace {

using Kind = Attribute::Kind;

OperationRow row_of(std::string_view name, void (*rule)(Translation&, const Operation&),
                    Opcode opcode, std::string_view attributes, std::string_view regions) {
  OperationRow row{name, rule, opcode, {}, {}};
  auto key_of = [&](std::string_view word) -> std::optional<AttributeKey> {
    const size_t arrow = word.find('>');
    if (arrow == std::string_view::npos) return std::nullopt;
    std::string_view key = word.substr(arrow + 1);
    return attribute_from_name(key.empty() ? word.substr(0, arrow) : key, opcode);
  };
  for_each_word(attributes, [&](std::string_view word) {
    if (auto key = key_of(word)) row.attributes.push_back({word.substr(0, word.find('>')), *key});
  });
  for_each_word(regions, [&](std::string_view word) { row.regions.push_back(key_of(word)); });
  return row;
}

}  // namespace

const OperationRow* find_row(std::string_view name) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, OperationRow> made;
#define LAMELLA_STABLEHLO(name, version, since, rule, opcode, attributes, regions) \
  made.insert_or_assign(name, row_of(name, translate_##rule, Opcode::opcode, attributes, regions));
#include "lamella/graph/stablehlo/operations.def"
    for (const SdyOperation& one : sdy_operations()) {
      made.insert_or_assign(one.name, row_of(one.name, one.rule, Opcode::CustomCall, "", ""));
    }
    return made;
  }();
  auto found = rows.find(name);
  return found != rows.end() ? &found->second : nullptr;
}

const Attribute& Translation::attribute(const Operation& op, std::string_view name) const {
  const Attribute* found = op.find(name);
  if (found == nullptr) fail(op, "expected an attribute '", name, "'");
  return *found;
}
int64_t Translation::integer(const Operation& op, std::string_view name) const {
  const Attribute& found = attribute(op, name);
  if (found.kind == Kind::Integer || found.kind == Kind::Boolean) return found.integer;
  if (found.kind == Kind::Unit) return 1;
  fail(op, "expected '", name, "' to be an integer");
}
int64_t Translation::integer(const Operation& op, std::string_view name, int64_t otherwise) const {
  return op.find(name) != nullptr ? integer(op, name) : otherwise;
}
std::string_view Translation::text(const Operation& op, std::string_view name) const {
  return attribute(op, name).text;
}

namespace {
// The numbers of a list, or of a tensor's elements. False if it is neither.
bool read_integers(const Attribute& from, std::vector<int64_t>& into) {
  if (from.kind == Kind::List) {
    for (const Attribute* one : from.list) {
      if (one->kind == Kind::List || one->kind == Kind::Elements) {
        if (!read_integers(*one, into)) return false;
      } else if (one->kind == Kind::Integer || one->kind == Kind::Boolean) {
        into.push_back(one->integer);
      } else {
        return false;
      }
    }
    return true;
  }
  if (from.kind != Kind::Elements) return false;
  const ElementType type = from.type->element;
  if (!is_integral(type) && type != ElementType::PRED) return false;
  const auto size = static_cast<size_t>(element_bytes(type));
  size_t count = 1;
  for (int64_t one : from.type->sizes) count *= static_cast<size_t>(one);
  // Lists of this length would not be attributes.
  if (count > (size_t{1} << 24)) return false;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, from.text.data() + (from.is_splat ? 0 : i * size), size);
    into.push_back(integer_of_bits(bits, type));
  }
  return true;
}
}  // namespace

std::vector<int64_t> Translation::integers(const Operation& op, std::string_view name) const {
  std::vector<int64_t> numbers;
  if (!read_integers(attribute(op, name), numbers)) {
    fail(op, "expected '", name, "' to be a list of integers");
  }
  return numbers;
}
std::vector<int64_t> Translation::integers(const Operation& op, std::string_view name, size_t count,
                                           int64_t otherwise) const {
  if (op.find(name) == nullptr) return std::vector<int64_t>(count, otherwise);
  std::vector<int64_t> numbers = integers(op, name);
  if (numbers.size() != count) {
    fail(op, "expected '", name, "' to be ", count, " integers, got ", numbers.size());
  }
  return numbers;
}

std::string frontend_attributes(const Attribute& dictionary) {
  std::string text = "{";
  for (const Named& one : dictionary.entries) {
    if (text.size() > 1) text += ",";
    const bool is_word = std::ranges::all_of(one.name, Scanner::is_word);
    text += str(is_word ? std::string(one.name) : quoted(one.name), "=", quoted(one.value->text));
  }
  return text + "}";
}

AttributeList Translation::attributes(const Operation& op) {
  AttributeList list(module_);
  if (const OperationRow* row = find_row(op.name)) {
    for (const OperationRow::Mapped& one : row->attributes) {
      if (const Attribute* value = op.find(one.name)) set(list, op, one.key, *value);
    }
  }
  add_common(list, op.attributes, op.location);
  return list;
}

namespace {

// {{0,1},{2,3}}: rows of a matrix, without the -1 that fill shorter ones up.
std::string groups_text(const Attribute& value, const std::vector<int64_t>& numbers) {
  const size_t width = value.kind == Kind::Elements && value.type->sizes.size() == 2
                           ? static_cast<size_t>(value.type->sizes[1])
                           : 2;
  std::string text = "{";
  for (size_t i = 0; width != 0 && i < numbers.size(); i += width) {
    if (i != 0) text += ',';
    std::vector<int64_t> group(
        numbers.begin() + static_cast<ptrdiff_t>(i),
        numbers.begin() + static_cast<ptrdiff_t>(std::min(i + width, numbers.size())));
    std::erase(group, -1);
    text += braced(group);
  }
  return text + "}";
}

// Groups of devices along some axes of a mesh; empty if the mesh or the axes are not understood.
std::string mesh_groups_text(const Attribute& value) {
  auto part = [](const Attribute* of, std::string_view name) -> const Attribute* {
    for (const Named& one : of->entries) {
      if (one.name == name) return one.value;
    }
    return nullptr;
  };
  const Attribute *mesh = part(&value, "mesh"), *axes = part(&value, "axes");
  const Attribute* all = mesh != nullptr ? part(mesh, "axes") : nullptr;
  if (all == nullptr || axes == nullptr) return {};
  std::vector<int64_t> sizes, strides(all->list.size(), 1), chosen, ids;
  int64_t devices = 1;
  for (const Attribute* one : all->list) {
    const Attribute* size = part(one, "size");
    if (size == nullptr || size->integer < 1 || size->integer > (1 << 20) / devices) return {};
    sizes.push_back(size->integer);
    devices *= size->integer;
  }
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  for (const Attribute* one : axes->list) {
    const Attribute* name = part(one, "name");
    size_t d = 0;
    for (; name != nullptr && d < sizes.size(); ++d) {
      const Attribute* other = part(all->list[d], "name");
      if (other != nullptr && other->text == name->text) break;
    }
    if (name == nullptr || d == sizes.size() || part(one, "sub_axis_info") != nullptr) return {};
    if (std::ranges::find(chosen, static_cast<int64_t>(d)) != chosen.end()) return {};
    chosen.push_back(static_cast<int64_t>(d));
  }
  const Attribute* listed = part(mesh, "device_ids");
  if (listed != nullptr &&
      (!read_integers(*listed, ids) || ids.size() != static_cast<size_t>(devices))) {
    return {};
  }
  int64_t width = 1;
  for (int64_t d : chosen) width *= sizes[static_cast<size_t>(d)];
  std::string text = "{";
  for (int64_t first = 0; first < devices; ++first) {
    // A group begins where all chosen coordinates are 0.
    const bool begins = std::ranges::all_of(chosen, [&](int64_t d) {
      return first / strides[static_cast<size_t>(d)] % sizes[static_cast<size_t>(d)] == 0;
    });
    if (!begins) continue;
    std::vector<int64_t> group;
    for (int64_t n = 0; n < width; ++n) {
      int64_t device = first, rest = n;
      for (size_t c = chosen.size(); c-- > 0;) {
        const auto d = static_cast<size_t>(chosen[c]);
        device += rest % sizes[d] * strides[d];
        rest /= sizes[d];
      }
      group.push_back(ids.empty() ? device : ids[static_cast<size_t>(device)]);
    }
    text += (text.size() > 1 ? "," : "") + braced(group);
  }
  return text + "}";
}

// {mode=highest}, or {tolerance={atol=1,rtol=0.5,ulps=2}}; empty for the default.
std::string accuracy_text(const Attribute& value) {
  double atol = 0, rtol = 0;
  int64_t ulps = 0;
  std::string_view mode = value.text;
  for (const Named& one : value.entries) {
    if (one.name == "atol") atol = one.value->real;
    if (one.name == "rtol") rtol = one.value->real;
    if (one.name == "ulps") ulps = one.value->integer;
    if (one.name == "mode") mode = one.value->text;
  }
  if (mode == "HIGHEST") return "{mode=highest}";
  if (mode != "TOLERANCE") return {};
  auto number = [](double one) { return Literal::scalar(ElementType::F64, one).to_string(); };
  return str("{tolerance={atol=", number(atol), ",rtol=", number(rtol), ",ulps=", ulps, "}}");
}

}  // namespace

void Translation::set(AttributeList& list, const Operation& op, AttributeKey key,
                      const Attribute& value) {
  const std::string_view name = attribute_name(key);
  auto expect = [&](bool is_right, std::string_view what) {
    if (!is_right) fail(op, "expected '", name, "' to be ", what);
  };
  switch (attribute_kind(key)) {
    case AttributeKind::Integer:
      expect(value.kind == Kind::Integer, "an integer");
      // A channel of 0 is none, and groups of 1 are the default.
      if (key == AttributeKey::ChannelId && value.integer <= 0) return;
      if ((key == AttributeKey::FeatureGroupCount || key == AttributeKey::BatchGroupCount) &&
          value.integer == 1) {
        return;
      }
      return list.integer(key, value.integer);
    case AttributeKind::Boolean:
      expect(value.kind == Kind::Boolean || value.kind == Kind::Unit, "a boolean");
      if (value.kind == Kind::Unit || value.integer != 0) list.flag(key, true);
      return;
    case AttributeKind::Real:
      expect(value.kind == Kind::Real, "a number");
      return list.real(key, value.real);
    case AttributeKind::Integers: {
      if (value.kind == Kind::Integer) return list.integers(key, std::span(&value.integer, 1));
      std::vector<int64_t> numbers;
      expect(read_integers(value, numbers), "a list of integers");
      // No batches are the default.
      if (numbers.empty() && name.ends_with("batching_dims")) return;
      return list.integers(key, numbers);
    }
    case AttributeKind::Word: {
      std::string word(value.text);
      // A text has the version of a custom call as a number.
      if (key == AttributeKey::ApiVersion && value.kind == Kind::Integer && value.integer >= 0 &&
          static_cast<size_t>(value.integer) < std::size(kApiVersions)) {
        word = kApiVersions[value.integer];
      }
      expect(!word.empty(), "a word");
      if (word == "NOTYPE" || word == "API_VERSION_UNSPECIFIED" || word == "API_VERSION_ORIGINAL")
        return;
      if (key == AttributeKey::Algorithm || key == AttributeKey::Distribution) {
        std::ranges::transform(word, word.begin(), [](char c) {
          return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        });
        word = "rng_" + word;
      }
      return list.text(key, word);
    }
    case AttributeKind::String:
      return list.text(key, value.text);
    case AttributeKind::Text:
      if (key == AttributeKey::ReplicaGroups || key == AttributeKey::SourceTargetPairs) {
        std::vector<int64_t> numbers;
        if (value.kind == Kind::Dictionary) {
          const std::string text = mesh_groups_text(value);
          expect(!text.empty(),
                 "groups of devices, or whole axes of a mesh that is given in place");
          return list.text(key, text);
        }
        expect(read_integers(value, numbers), "a matrix of integers");
        return list.text(key, groups_text(value, numbers));
      }
      if (key == AttributeKey::ResultAccuracy) {
        const std::string text = accuracy_text(value);
        if (!text.empty()) list.text(key, text);
        return;
      }
      break;
    default:
      break;
  }
  fail(op, "expected an attribute that this operation has, got '", name, "'");
}

}  // namespace lamella::hlo::stablehlo
