// Types, enumerators and numbers that bytecode and text share.
#include "lamella/graph/stablehlo/names.h"

#include <unordered_map>

#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/stablehlo/sdy.h"

namespace lamella::hlo::stablehlo {

void Source::fail_at(size_t position, const std::string& message) const {
  if (is_text) Scanner(data, "stablehlo").fail_at(position, message);
  throw Error(str("stablehlo: byte ", position, ": ", message));
}

namespace {

// By the code of VHLO's bytecode; Invalid for types that are no element's.
constexpr ElementType kElements[] = {
    ElementType::PRED,       ElementType::Invalid,    ElementType::BF16,
    ElementType::F16,        ElementType::F32,        ElementType::F64,
    ElementType::F8E4M3FN,   ElementType::F8E5M2,     ElementType::Invalid,
    ElementType::S64,        ElementType::S4,         ElementType::S8,
    ElementType::S16,        ElementType::S32,        ElementType::S64,
    ElementType::U4,         ElementType::U8,         ElementType::U16,
    ElementType::U32,        ElementType::U64,        ElementType::Invalid,
    ElementType::Invalid,    ElementType::Invalid,    ElementType::Invalid,
    ElementType::Invalid,    ElementType::Invalid,    ElementType::Invalid,
    ElementType::F8E4M3FNUZ, ElementType::F8E5M2FNUZ, ElementType::F8E4M3B11FNUZ,
    ElementType::Invalid,    ElementType::S2,         ElementType::U2,
    ElementType::Invalid,    ElementType::Invalid,    ElementType::F8E4M3,
    ElementType::F8E3M4,     ElementType::F4E2M1FN,   ElementType::Invalid,
    ElementType::Invalid,    ElementType::F8E8M0FNU,
};
// The names of attributes in the order of bytecode, which is the alphabet's, by "name_v1".
using AttributeNames = std::vector<std::string_view>;
const std::unordered_map<std::string, AttributeNames>& attribute_names() {
  static const auto all = [] {
    std::unordered_map<std::string, AttributeNames> made;
    auto add = [&](std::string operation, std::string_view words) {
      AttributeNames names;
      for_each_word(
          words, [&](std::string_view word) { names.push_back(word.substr(0, word.find('>'))); });
      std::ranges::sort(names);
      made.emplace(std::move(operation), std::move(names));
    };
#define LAMELLA_STABLEHLO(name, version, since, rule, opcode, attributes, regions) \
  add(str(name, "_v", version), attributes);
#include "lamella/graph/stablehlo/operations.def"
    for (const SdyOperation& one : sdy_operations()) add(str(one.name, "_v0"), one.attributes);
    return made;
  }();
  return all;
}

}  // namespace

std::optional<ElementType> element_of_code(uint64_t code) {
  if (code >= std::size(kElements) || kElements[code] == ElementType::Invalid) return std::nullopt;
  return kElements[code];
}
int element_code(ElementType type) {
  for (size_t code = std::size(kElements); code-- > 0;) {  // index comes before s64
    if (kElements[code] == type) return static_cast<int>(code);
  }
  return -1;
}
bool is_operation(std::string_view operation) {
  return attribute_names().contains(std::string(operation));
}
const std::vector<std::string_view>& own_attributes(std::string_view operation) {
  static const std::vector<std::string_view> kNone;
  auto found = attribute_names().find(std::string(operation));
  return found != attribute_names().end() ? found->second : kNone;
}

std::optional<ElementType> integer_type(uint64_t bits, bool is_unsigned) {
  using enum ElementType;
  switch (bits) {
    case 1:
      return PRED;
    case 2:
      return is_unsigned ? U2 : S2;
    case 4:
      return is_unsigned ? U4 : S4;
    case 8:
      return is_unsigned ? U8 : S8;
    case 16:
      return is_unsigned ? U16 : S16;
    case 32:
      return is_unsigned ? U32 : S32;
    case 64:
      return is_unsigned ? U64 : S64;
    default:
      return std::nullopt;
  }
}

double real_of_bits(uint64_t bits, ElementType type) {
  Literal one = Literal::lent(Shape::scalar(type), &bits);
  return one.real_at(0);
}
int64_t integer_of_bits(uint64_t bits, ElementType type) {
  if (type == ElementType::PRED) return (bits & 1) != 0 ? 1 : 0;
  const int unused = 64 - element_bits(type);
  if (element_kind(type) == ElementKind::Signed) {
    return static_cast<int64_t>(bits << unused) >> unused;
  }
  return static_cast<int64_t>(bits << unused >> unused);
}

Shape shape_of(const Type& type, const std::function<void(const std::string&)>& fail) {
  switch (type.kind) {
    case Type::Kind::Element:
      return Shape::scalar(type.element);
    case Type::Kind::Buffer:
    case Type::Kind::Tensor: {
      std::vector<int64_t> sizes = type.sizes;
      for (size_t d = 0; d < sizes.size(); ++d) {
        const bool is_bounded = d < type.bounds.size() && type.bounds[d] != kUnknownSize;
        if (sizes[d] == kUnknownSize) sizes[d] = is_bounded ? type.bounds[d] : 0;
      }
      Shape made;
      try {
        made = Shape::array(type.element, sizes);
      } catch (const Error& error) {
        fail(error.what());
      }
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (type.sizes[d] != kUnknownSize) continue;
        const bool is_bounded = d < type.bounds.size() && type.bounds[d] != kUnknownSize;
        const auto at = static_cast<int64_t>(d);
        is_bounded ? made.set_dynamic(at) : made.set_unbounded(at);
      }
      return type.kind == Type::Kind::Buffer ? Shape::buffer(made) : made;
    }
    case Type::Kind::Tuple:
    case Type::Kind::Future: {
      std::vector<Shape> parts;
      for (const Type* part : type.parts) parts.push_back(shape_of(*part, fail));
      try {
        return Shape::tuple(std::move(parts));
      } catch (const Error& error) {
        fail(error.what());
      }
      return {};
    }
    case Type::Kind::Token:
      return Shape::token();
    case Type::Kind::Function:
    case Type::Kind::Other:
      break;
  }
  fail(str("expected a type that modules have, got ", type_text(type)));
  return {};
}

std::string element_text(ElementType type) {
  if (is_complex(type)) return str("complex<", element_text(part_of_complex(type)), ">");
  if (type == ElementType::PRED) return "i1";
  std::string name(element_name(type));
  switch (element_kind(type)) {
    case ElementKind::Signed:
      return "i" + name.substr(1);
    case ElementKind::Unsigned:
      return "ui" + name.substr(1);
    default:
      break;
  }
  // f8e4m3fn is written f8E4M3FN.
  if (is_small_float(type)) {
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    name[0] = 'f';
  }
  return name;
}
std::optional<ElementType> element_from_text(std::string_view text) {
  if (text == "index") return ElementType::S64;
  for (size_t n = 1; n < ElementTable::kCount; ++n) {
    const auto type = static_cast<ElementType>(n);
    if (is_array_type(type) && !is_complex(type) && element_text(type) == text) return type;
  }
  return std::nullopt;
}

std::string type_text(const Type& type) {
  auto list = [](const std::vector<const Type*>& parts) {
    std::string text;
    for (const Type* part : parts) text += (text.empty() ? "" : ", ") + type_text(*part);
    return text;
  };
  switch (type.kind) {
    case Type::Kind::Element:
      return element_text(type.element);
    case Type::Kind::Buffer:
    case Type::Kind::Tensor: {
      std::string text = type.kind == Type::Kind::Tensor ? "tensor<" : "memref<";
      for (int64_t size : type.sizes) text += (size == kUnknownSize ? "?" : str(size)) + "x";
      text += element_text(type.element);
      if (!type.bounds.empty()) {
        text += ", #stablehlo.bounds<";
        for (size_t d = 0; d < type.bounds.size(); ++d) {
          text += d == 0 ? "" : ", ";
          text += type.bounds[d] == kUnknownSize ? "?" : str(type.bounds[d]);
        }
        text += ">";
      }
      return text + ">";
    }
    case Type::Kind::Tuple:
      return str("tuple<", list(type.parts), ">");
    case Type::Kind::Future:
      return str("!stablehlo.future<", list(type.parts), ">");
    case Type::Kind::Token:
      return "!stablehlo.token";
    case Type::Kind::Function:
      return str("(", list(type.parts), ") -> (", list(type.results), ")");
    case Type::Kind::Other:
      break;
  }
  return std::string(type.name);
}

const char* const* enumerators(uint64_t code) {
  static constexpr const char* kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT", nullptr};
  static constexpr const char* kComparisons[] = {"NOTYPE", "FLOAT",    "TOTALORDER",
                                                 "SIGNED", "UNSIGNED", nullptr};
  static constexpr const char* kApiVersions[] = {
      "API_VERSION_UNSPECIFIED",      "API_VERSION_ORIGINAL",
      "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
      "API_VERSION_TYPED_FFI",        nullptr};
  static constexpr const char* kFfts[] = {"FFT", "IFFT", "RFFT", "IRFFT", nullptr};
  static constexpr const char* kPrecisions[] = {"DEFAULT", "HIGH", "HIGHEST", nullptr};
  static constexpr const char* kGenerators[] = {"DEFAULT", "THREE_FRY", "PHILOX", nullptr};
  static constexpr const char* kDistributions[] = {"", "UNIFORM", "NORMAL", nullptr};
  static constexpr const char* kTransposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE",
                                                "ADJOINT", nullptr};
  static constexpr const char* kAccuracies[] = {"DEFAULT", "HIGHEST", "TOLERANCE", nullptr};
  switch (code) {
    case 3:
      return kDirections;
    case 4:
      return kComparisons;
    case 5:
      return kApiVersions;
    case 7:
      return kFfts;
    case 11:
      return kPrecisions;
    case 12:
      return kGenerators;
    case 13:
      return kDistributions;
    case 16:
      return kTransposes;
    case 19:
      return kAccuracies;
    default:
      return nullptr;
  }
}

}  // namespace lamella::hlo::stablehlo
