// Signature strings: derived from schemas, compared, printed, and turned into schemas.
#include "lamella/dispatch/signatures.h"
#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

std::string code_of(SchemaType type) {
  switch (type.kind()) {
    case TypeKind::kTensor:
      return "T";
    case TypeKind::kInt:
      return "i";
    case TypeKind::kFloat:
      return "d";
    case TypeKind::kBool:
      return "b";
    case TypeKind::kStr:
      return "s";
    case TypeKind::kScalar:
      return "S";
    case TypeKind::kGenerator:
      return "G";
    case TypeKind::kScalarType:
      return "y";
    case TypeKind::kLayout:
      return "l";
    case TypeKind::kDevice:
      return "v";
    case TypeKind::kMemoryFormat:
      return "m";
    case TypeKind::kOptional: {
      if (type.element().is_list()) {
        std::string inner = code_of(type.element());
        return inner == "I" || inner == "D" || inner == "B" ? "?" + inner : "V";
      }
      std::string inner = code_of(type.element());
      return inner == "V" || inner == "L" ? "V" : "?" + inner;
    }
    case TypeKind::kList:
      switch (type.element().kind()) {
        case TypeKind::kTensor:
          return "L";
        case TypeKind::kInt:
          return "I";
        case TypeKind::kFloat:
          return "D";
        case TypeKind::kBool:
          return "B";
        case TypeKind::kOptional:
          return type.element().element().is_tensor() ? "L" : "V";
        default:
          return "V";
      }
    default:
      return "V";
  }
}

// The code that starts at `at`: one letter, or '?' and a letter.
std::string_view next_code(std::string_view signature, size_t at) {
  return signature.substr(at, signature[at] == '?' ? 2 : 1);
}

// The codes of parameters (before '>') or returns (after it).
std::vector<std::string_view> codes(std::string_view signature, bool returns) {
  size_t split = signature.find('>');
  std::string_view part = returns ? signature.substr(split + 1) : signature.substr(0, split);
  std::vector<std::string_view> result;
  for (size_t at = 0; at < part.size();) {
    result.push_back(next_code(part, at));
    at += result.back().size();
  }
  return result;
}

bool code_fits(std::string_view expected, std::string_view got) {
  if (expected == got) return true;
  // A kernel may take Tensor for Tensor? (None is an undefined tensor), int for an enumeration, and
  // Generator for Generator?: their C forms are the same.
  if (expected == "?T" && got == "T") return true;
  if (got == "i") return expected == "y" || expected == "l" || expected == "m";
  return expected == "?G" && got == "G";
}

std::string type_of_code(std::string_view code) {
  if (code[0] == '?') return type_of_code(code.substr(1)) + "?";
  switch (code[0]) {
    case 'T':
      return "Tensor";
    case 'L':
      return "Tensor[]";
    case 'i':
      return "int";
    case 'b':
      return "bool";
    case 'd':
      return "float";
    case 'S':
      return "Scalar";
    case 's':
      return "str";
    case 'I':
      return "int[]";
    case 'D':
      return "float[]";
    case 'B':
      return "bool[]";
    case 'G':
      return "Generator";
    case 'y':
      return "ScalarType";
    case 'l':
      return "Layout";
    case 'm':
      return "MemoryFormat";
    case 'v':
      return "Device";
    default:
      return "Any";
  }
}

std::string text_with_names(std::string_view signature, bool names) {
  std::string text = "(";
  int index = 0;
  for (std::string_view code : codes(signature, false)) {
    if (index != 0) text += ", ";
    text += type_of_code(code);
    if (names) text += " _" + std::to_string(index);
    ++index;
  }
  text += ") -> ";
  std::vector<std::string_view> results = codes(signature, true);
  if (results.size() != 1) text += "(";
  for (size_t i = 0; i < results.size(); ++i) {
    if (i != 0) text += ", ";
    text += type_of_code(results[i]);
  }
  if (results.size() != 1) text += ")";
  return text;
}

}  // namespace

std::string signature_of(const FunctionSchema& schema) {
  std::string text;
  for (const Argument& argument : schema.arguments) text += code_of(argument.type);
  text += '>';
  for (const Argument& result : schema.returns) text += code_of(result.type);
  return text;
}

std::string signature_difference(std::string_view expected, std::string_view got) {
  for (bool returns : {false, true}) {
    std::vector<std::string_view> e = codes(expected, returns), g = codes(got, returns);
    const std::string what = returns ? "return" : "argument";
    if (e.size() != g.size()) {
      return str("The number of ", what, "s is different. ", e.size(), " vs ", g.size());
    }
    for (size_t i = 0; i < e.size(); ++i) {
      if (code_fits(e[i], g[i])) continue;
      return str("Type mismatch in ", what, ' ', i + 1, ": ", type_of_code(e[i]), " vs ",
                 type_of_code(g[i]));
    }
  }
  return "";
}

std::string signature_text(std::string_view signature) { return text_with_names(signature, false); }

std::string schema_of_signature(std::string_view signature) {
  for (bool returns : {false, true}) {
    for (std::string_view code : codes(signature, returns)) {
      if (code == "V") {
        throw Error(
            "def: a schema cannot be inferred from this function's types; give one, such as "
            "'name(Scalar[] values) -> Tensor'");
      }
    }
  }
  return text_with_names(signature, true);
}

}  // namespace lamella

extern "C" lamella_status lamella_check_signature(const lamella_operator* op,
                                                  const char* signature) noexcept {
  using namespace lamella;
  return lamella::detail::guarded([&] {
    OperatorEntry* entry = entry_of(op);
    std::lock_guard lock(Registry::get().mutex());
    const FunctionSchema& schema = Registry::get().schema(entry);
    std::string expected = signature_of(schema);
    const std::string difference = signature_difference(expected, signature);
    LAMELLA_CHECK(difference.empty(), entry->full_name(), ": expected a C++ signature ",
                  signature_text(expected), " from its schema '", entry->current->canonical,
                  "', got ", signature_text(signature), ". ", difference);
  });
}
