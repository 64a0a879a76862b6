// Writing a tree as a portable artifact: MLIR's bytecode, version 6, of the dialect vhlo.
#include <algorithm>
#include <cstring>

#include "lamella/graph/stablehlo/export.h"
#include "lamella/graph/stablehlo/names.h"

namespace lamella::hlo::stablehlo {
namespace {

using Kind = Attribute::Kind;

class Writing {
 public:
  void byte(uint8_t value) { bytes_ += static_cast<char>(value); }
  void number(uint64_t value) {
    // Each byte holds seven bits of the value. The number of zeros below the lowest set bit is the
    // number of further bytes.
    for (int count = 1; count <= 8; ++count) {
      if (value >> (7 * count) != 0) continue;
      uint64_t all = (value << 1 | 1) << (count - 1);
      for (int i = 0; i < count; ++i) byte(static_cast<uint8_t>(all >> (8 * i)));
      return;
    }
    byte(0);
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void signed_number(int64_t value) {
    number(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void flagged(uint64_t value, bool flag) { number(value << 1 | (flag ? 1 : 0)); }
  void raw(std::string_view data) { bytes_ += data; }
  void section(uint8_t id, std::string_view data) {
    byte(id);
    number(data.size());
    raw(data);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Texts, each once, by the number it got first.
class Numbers {
 public:
  uint64_t of(std::string_view text) {
    auto [found, is_new] = numbers_.emplace(std::string(text), numbers_.size());
    if (is_new) order_.push_back(found->first);
    return found->second;
  }
  const std::vector<std::string>& order() const { return order_; }

 private:
  std::unordered_map<std::string, uint64_t> numbers_;
  std::vector<std::string> order_;
};

constexpr uint64_t kBuiltin = 0, kVhlo = 1;  // numbers of dialects

class Writer {
 public:
  std::string run(const Operation& root) {
    strings_.of("builtin");
    strings_.of("vhlo");
    Writing ir;
    ir.flagged(1, false);
    operation(ir, root);
    Writing dialects, offsets, data, all, properties, strings;
    dialects.number(2);
    for (const char* name : {"builtin", "vhlo"}) dialects.flagged(strings_.of(name), false);
    dialects.number(operations_.order().size());
    entries(
        operations_, [&](std::string_view name) { dialects.flagged(strings_.of(name), true); },
        dialects);
    offsets.number(attributes_.order().size());
    offsets.number(types_.order().size());
    for (const Numbers* one : {&attributes_, &types_}) {
      entries(
          *one,
          [&](std::string_view text) {
            offsets.flagged(text.size(), true);
            data.raw(text);
          },
          offsets);
    }
    properties.number(properties_.order().size());
    for (const std::string& one : properties_.order()) {
      properties.number(one.size());
      properties.raw(one);
    }
    strings.number(strings_.order().size());
    for (size_t i = strings_.order().size(); i-- > 0;)
      strings.number(strings_.order()[i].size() + 1);
    for (const std::string& one : strings_.order()) {
      strings.raw(one);
      strings.byte(0);
    }
    all.raw("ML\xefR");
    all.number(6);
    all.raw(str("StableHLO_v", kWrittenVersion / 100, ".", kWrittenVersion % 100, ".0"));
    all.byte(0);
    all.section(0, strings.bytes());
    all.section(1, dialects.bytes());
    all.section(2, data.bytes());
    all.section(3, offsets.bytes());
    all.section(4, ir.bytes());
    all.section(8, properties.bytes());
    return all.bytes();
  }

 private:
  // Entries are kept with their dialect's number as the first byte; those that follow each other
  // and have the same one form a group.
  template <class F>
  void entries(const Numbers& numbers, F&& write, Writing& out) {
    const auto& order = numbers.order();
    for (size_t i = 0; i < order.size();) {
      size_t end = i;
      while (end < order.size() && order[end][0] == order[i][0]) ++end;
      out.number(static_cast<uint64_t>(order[i][0]));
      out.number(end - i);
      for (; i < end; ++i) write(std::string_view(order[i]).substr(1));
    }
  }
  static uint64_t keep(Numbers& numbers, uint64_t dialect, std::string_view text) {
    return numbers.of(std::string(1, static_cast<char>(dialect)) + std::string(text));
  }

  // ---- Types ----

  uint64_t type(const Type& from) {
    if (auto found = known_types_.find(&from); found != known_types_.end()) return found->second;
    Writing out;
    auto list = [&](const std::vector<const Type*>& parts) {
      std::vector<uint64_t> numbers;
      for (const Type* one : parts) numbers.push_back(type(*one));
      out.number(numbers.size());
      for (uint64_t one : numbers) out.number(one);
    };
    switch (from.kind) {
      case Type::Kind::Element:
        element(out, from.element, from.name);
        break;
      case Type::Kind::Tensor: {
        Writing inner;
        element(inner, from.element, from.name);
        const uint64_t number = keep(types_, kVhlo, inner.bytes());
        out.number(from.bounds.empty() ? 20 : 21);
        if (!from.bounds.empty()) {
          Writing bounds;
          bounds.number(18);
          sizes(bounds, from.bounds);
          out.number(keep(attributes_, kVhlo, bounds.bytes()));
        }
        sizes(out, from.sizes);
        out.number(number);
        break;
      }
      case Type::Kind::Token:
        out.number(22);
        break;
      case Type::Kind::Tuple:
        out.number(23);
        list(from.parts);
        break;
      case Type::Kind::Function:
        out.number(8);
        list(from.parts);
        list(from.results);
        break;
      default:
        out.number(from.name == "tf32" ? 34 : 33);
        break;
    }
    return known_types_[&from] = keep(types_, kVhlo, out.bytes());
  }
  void sizes(Writing& out, const std::vector<int64_t>& numbers) {
    out.number(numbers.size());
    for (int64_t one : numbers) out.signed_number(one);
  }
  void element(Writing& out, ElementType of, std::string_view name) {
    if (is_complex(of)) {
      Writing part;
      element(part, part_of_complex(of), {});
      const uint64_t number = keep(types_, kVhlo, part.bytes());
      out.number(1);
      return out.number(number);
    }
    const int code = name == "index" ? 9 : element_code(of);
    if (code < 0)
      throw Error(str("to_stablehlo: expected a type that StableHLO has, got ", element_name(of)));
    out.number(static_cast<uint64_t>(code));
  }

  // ---- Attributes ----

  uint64_t builtin_string(std::string_view text) {
    Writing out;
    out.number(2);
    out.number(strings_.of(text));
    return keep(attributes_, kBuiltin, out.bytes());
  }
  uint64_t vhlo_string(std::string_view text) {
    Writing out;
    out.number(14);
    out.number(strings_.of(text));
    return keep(attributes_, kVhlo, out.bytes());
  }
  void integer(Writing& out, int64_t value, int bits) {
    bits <= 8 ? out.byte(static_cast<uint8_t>(value)) : out.signed_number(value);
  }
  void real(Writing& out, double value, ElementType type) {
    Literal one = Literal::scalar(type, value);
    int64_t bits = 0;
    std::memcpy(&bits, one.data(), one.bytes());
    // The sign is that of the width.
    integer(out, bits, element_bits(type));
  }

  // `name` says which enumeration a word belongs to.
  uint64_t attribute(std::string_view name, const Attribute& from) {
    Writing out;
    switch (from.kind) {
      case Kind::Boolean:
      case Kind::Unit:
        out.number(2);
        out.number(from.kind == Kind::Unit || from.integer != 0 ? 1 : 0);
        break;
      case Kind::Integer: {
        const Type* of = from.type != nullptr ? from.type : &kInteger;
        const uint64_t number = type(*of);
        out.number(9);
        out.number(number);
        integer(out, from.integer, element_bits(of->element));
        break;
      }
      case Kind::Real: {
        const Type* of = from.type != nullptr ? from.type : &kReal;
        const uint64_t number = type(*of);
        out.number(8);
        out.number(number);
        real(out, from.real, of->element);
        break;
      }
      case Kind::String:
      case Kind::Symbol:
        return vhlo_string(from.text);
      case Kind::Word:
        return word(name, from.text);
      case Kind::TypeOf: {
        const uint64_t number = type(*from.type);
        out.number(17);
        out.number(number);
        break;
      }
      case Kind::List: {
        std::vector<uint64_t> numbers;
        for (const Attribute* one : from.list) numbers.push_back(attribute(name, *one));
        out.number(1);
        out.number(numbers.size());
        for (uint64_t one : numbers) out.number(one);
        break;
      }
      case Kind::Dictionary:
        if (name == "output_operand_aliases") return alias(from);
        if (name == "result_accuracy") return accuracy(from);
        return dictionary(from);
      case Kind::Elements:
        return elements(from);
      case Kind::Location:
        throw Error("to_stablehlo: expected an attribute, got a location");
    }
    return keep(attributes_, kVhlo, out.bytes());
  }
  uint64_t word(std::string_view name, std::string_view text) {
    static constexpr std::pair<std::string_view, uint64_t> kCodes[] = {
        {"comparison_direction", 3}, {"compare_type", 4},
        {"api_version", 5},          {"fft_type", 7},
        {"precision_config", 11},    {"rng_algorithm", 12},
        {"rng_distribution", 13},    {"transpose_a", 16},
        {"result_accuracy", 19}};
    Writing out;
    for (const auto& [known, code] : kCodes) {
      if (known != name) continue;
      const char* const* names = enumerators(code);
      for (uint64_t value = 0; names[value] != nullptr; ++value) {
        if (names[value] != text) continue;
        out.number(code);
        out.number(value);
        return keep(attributes_, kVhlo, out.bytes());
      }
    }
    throw Error(str("to_stablehlo: expected an enumerator of '", name, "', got '", text, "'"));
  }
  uint64_t dictionary(const Attribute& from) {
    std::vector<std::pair<uint64_t, uint64_t>> entries;
    for (const Named& one : from.entries) {
      const uint64_t name = vhlo_string(one.name);
      entries.emplace_back(name, attribute(one.name, *one.value));
    }
    Writing out;
    out.number(6);
    out.number(entries.size());
    for (const auto& [name, value] : entries) {
      out.number(name);
      out.number(value);
    }
    return keep(attributes_, kVhlo, out.bytes());
  }
  const Attribute& part(const Attribute& from, std::string_view name) {
    return *std::ranges::find(from.entries, name, &Named::name)->value;
  }
  uint64_t alias(const Attribute& from) {
    Writing out;
    auto list = [&](std::string_view name) {
      std::string_view data = part(from, name).text;
      out.number(data.size() / 8);
      for (size_t i = 0; i < data.size(); i += 8) {
        int64_t one = 0;
        std::memcpy(&one, data.data() + i, 8);
        out.signed_number(one);
      }
    };
    out.number(10);
    list("output_tuple_indices");
    out.signed_number(part(from, "operand_index").integer);
    list("operand_tuple_indices");
    return keep(attributes_, kVhlo, out.bytes());
  }
  uint64_t accuracy(const Attribute& from) {
    const uint64_t mode = word("result_accuracy", part(from, "mode").text);
    Writing out;
    out.number(20);
    real(out, part(from, "atol").real, ElementType::F64);
    real(out, part(from, "rtol").real, ElementType::F64);
    out.signed_number(part(from, "ulps").integer);
    out.number(mode);
    return keep(attributes_, kVhlo, out.bytes());
  }
  uint64_t elements(const Attribute& from) {
    const uint64_t number = type(*from.type);
    std::string_view data = from.text;
    std::string bits;
    size_t count = 1;
    for (int64_t size : from.type->sizes) count *= static_cast<size_t>(size);
    const auto size = static_cast<size_t>(element_bytes(from.type->element));
    // Equal elements are written once; pred as bits.
    const bool is_splat = count > 1 && data.substr(size) == data.substr(0, data.size() - size);
    if (is_splat) data = data.substr(0, size);
    if (from.type->element == ElementType::PRED) {
      bits.assign(is_splat ? 1 : (count + 7) / 8, '\0');
      for (size_t i = 0; i < data.size(); ++i) {
        if (data[i] != 0) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
      }
      if (is_splat && data[0] != 0) bits[0] = '\xff';
      data = bits;
    }
    Writing out;
    out.number(15);
    out.number(number);
    out.number(data.size());
    out.raw(data);
    return keep(attributes_, kVhlo, out.bytes());
  }
  // Writes a dictionary of the dialect builtin: the attributes, by name, that the operation's table
  // does not list.
  uint64_t discardable(const std::vector<Named>& all, bool is_vhlo) {
    std::vector<std::pair<uint64_t, uint64_t>> entries;
    std::vector<Named> sorted = all;
    std::ranges::sort(sorted, {}, &Named::name);
    for (const Named& one : sorted) {
      const uint64_t name = builtin_string(one.name);
      entries.emplace_back(name, is_vhlo ? attribute(one.name, *one.value) : builtin(*one.value));
    }
    Writing out;
    out.number(1);
    out.number(entries.size());
    for (const auto& [name, value] : entries) {
      out.number(name);
      out.number(value);
    }
    return keep(attributes_, kBuiltin, out.bytes());
  }
  uint64_t builtin(const Attribute& from) {
    if (from.kind == Kind::String) return builtin_string(from.text);
    if (from.kind == Kind::Dictionary) return discardable(from.entries, false);
    if (from.kind != Kind::Integer) throw Error("to_stablehlo: expected a number or a string");
    Writing type, out;
    type.number(0);
    type.number(static_cast<uint64_t>(element_bits(from.type->element)) << 2);
    const uint64_t number = keep(types_, kBuiltin, type.bytes());
    out.number(8);
    out.number(number);
    out.signed_number(from.integer);
    return keep(attributes_, kBuiltin, out.bytes());
  }

  // ---- Operations ----

  void operation(Writing& out, const Operation& op) {
    const bool is_vhlo = op.name != "module";
    out.number(keep(operations_, is_vhlo ? kVhlo : kBuiltin, op.name));
    std::vector<std::string_view> own = {"sym_name", "sym_visibility"};
    if (is_vhlo) own = own_attributes(op.name);
    std::vector<Named> others;
    for (const Named& one : op.attributes) {
      if (std::ranges::find(own, one.name) == own.end()) others.push_back(one);
    }
    Writing properties;
    for (std::string_view name : own) {
      const Attribute* value = op.find(name);
      if (is_vhlo) {
        if (value == nullptr) throw Error(str("to_stablehlo: '", op.name, "' lacks '", name, "'"));
        properties.number(attribute(name, *value));
      } else if (value == nullptr) {
        properties.number(0);
      } else {
        properties.flagged(builtin(*value), true);
      }
    }
    const bool has_properties = !own.empty();
    out.byte(static_cast<uint8_t>((others.empty() ? 0 : 1) | (op.results.empty() ? 0 : 2) |
                                  (op.operands.empty() ? 0 : 4) | (op.regions.empty() ? 0 : 16) |
                                  (has_properties ? 64 : 0)));
    Writing location;
    location.number(15);
    out.number(keep(attributes_, kBuiltin, location.bytes()));
    if (!others.empty()) out.number(discardable(others, is_vhlo));
    if (has_properties) out.number(properties_.of(properties.bytes()));
    if (!op.results.empty()) {
      out.number(op.results.size());
      for (Value* one : op.results) {
        out.number(type(*one->type));
        one->mark = next_++;
      }
    }
    if (!op.operands.empty()) {
      out.number(op.operands.size());
      for (const Value* one : op.operands) out.number(one->mark);
    }
    if (!op.regions.empty()) regions(out, op);
  }
  void regions(Writing& out, const Operation& op) {
    const bool is_isolated = op.name == "module" || op.name == "func_v1";
    out.flagged(op.regions.size(), is_isolated);
    Writing inside;
    Writing& into = is_isolated ? inside : out;
    const uint32_t next = next_, end = end_;
    if (is_isolated) end_ = 0;
    for (const Region& region : op.regions) {
      const Block& block = *region.blocks[0];
      uint32_t values = static_cast<uint32_t>(block.arguments.size());
      for (const Operation* one : block.operations)
        values += static_cast<uint32_t>(one->results.size());
      const uint32_t before = end_;
      next_ = end_;
      end_ += values;
      into.number(1);
      into.number(values);
      into.flagged(block.operations.size(), !block.arguments.empty());
      if (!block.arguments.empty()) {
        into.number(block.arguments.size());
        for (Value* one : block.arguments) {
          into.flagged(type(*one->type), false);
          one->mark = next_++;
        }
        into.byte(0);
      }
      for (const Operation* one : block.operations) operation(into, *one);
      end_ = before;
    }
    next_ = next;
    end_ = end;
    if (is_isolated) out.section(4, inside.bytes());
  }

  inline static const Type kInteger{Type::Kind::Element, ElementType::S64, {}, {}, {}, {}, {}};
  inline static const Type kReal{Type::Kind::Element, ElementType::F32, {}, {}, {}, {}, {}};
  Numbers strings_, types_, attributes_, operations_, properties_;
  std::unordered_map<const Type*, uint64_t> known_types_;
  uint32_t next_ = 0;  // the number of the next value of the block
  uint32_t end_ = 0;   // behind the values of the regions that are open
};

}  // namespace

std::string write_bytecode(const Operation& root) { return Writer().run(root); }

}  // namespace lamella::hlo::stablehlo
