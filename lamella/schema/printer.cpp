// Printing of schemas and their parts. Two forms: as spelled, and resolved (defaults by value).
#include "lamella/schema/printer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "lamella/schema/schema.h"

namespace lamella {
namespace detail {

std::string quote_string(std::string_view content) {
  std::string out = "\"";
  for (char c : content) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\'':
        out += "\\'";
        break;
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\v':
        out += "\\v";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
          out += c;
        } else {
          char octal[8];
          std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(byte));
          out += octal;
        }
      }
    }
  }
  return out + "\"";
}

std::string float_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (std::isnan(value)) return "nan";
  char text[64];
  if (value == std::floor(value) && std::fabs(value) < 1e10) {
    std::snprintf(text, sizeof text, "%.0f.", value);
  } else {
    std::snprintf(text, sizeof text, "%.17g", value);
  }
  return text;
}

namespace {

struct ValueText {
  std::string operator()(DefaultValue::None) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return float_text(value); }
  std::string operator()(const std::string& value) const { return quote_string(value); }
  std::string operator()(const std::complex<double>& value) const {
    std::string imag = float_text(value.imag());
    return float_text(value.real()) + (imag[0] == '-' ? "" : "+") + imag + "j";
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out = "[";
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i) out += ", ";
      out += (*this)(T(values[i]));
    }
    return out + "]";
  }
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i) out += "|";
    out += names[i];
  }
  return out;
}

// Inserts the annotations where they belong among the `?` and `[]` of the type.
std::string annotated(SchemaType type, const std::vector<AliasInfo>& aliases, int depth,
                      bool resolved) {
  std::string out;
  if (type.is_optional()) {
    out = annotated(type.element(), aliases, depth + 1, resolved) + "?";
  } else if (type.is_list()) {
    out = annotated(type.element(), aliases, depth + 1, resolved) + "[" +
          (type.fixed_size() ? std::to_string(*type.fixed_size()) : "") + "]";
  } else {
    out = resolved && type.name() == "DeviceIndex" ? "int" : type.str();
  }
  for (const AliasInfo& alias : aliases) {
    if (alias.depth == depth) out += alias.str();
  }
  return out;
}

// PyTorch prints the default of an int[N] whose elements are all equal as the bare number, but only
// for plain int and N above 1.
std::string resolved_default(const Argument& argument) {
  const SchemaType type = argument.type.without_optional();
  const auto* values = std::get_if<std::vector<std::int64_t>>(&argument.default_value->value);
  if (values != nullptr && values->size() > 1 && type.is_list() && type.fixed_size() &&
      type.element() == SchemaType::atom(TypeKind::kInt) && !type.is_symbolic() &&
      static_cast<int>(values->size()) == *type.fixed_size() &&
      std::ranges::all_of(*values, [&](std::int64_t v) { return v == values->front(); })) {
    return std::to_string(values->front());
  }
  return argument.default_value->resolved_str();
}

std::string argument_text(const Argument& argument, bool resolved) {
  std::string out = annotated(argument.type, argument.aliases, 0, resolved);
  if (!argument.name.empty()) out += " " + argument.name;
  if (argument.default_value) {
    out += "=";
    out += resolved ? resolved_default(argument) : argument.default_value->str();
  }
  return out;
}

std::string schema_text(const FunctionSchema& schema, bool resolved) {
  std::string out = schema.name.str() + "(";
  bool first = true;
  bool star = false;
  auto separate = [&] {
    if (!first) out += ", ";
    first = false;
  };
  for (const Argument& argument : schema.arguments) {
    if (argument.kwarg_only && !star) {
      separate();
      out += "*";
      star = true;
    }
    separate();
    out += argument_text(argument, resolved);
  }
  if (schema.is_vararg) {
    separate();
    out += "...";
  }
  out += ") -> ";
  if (schema.is_varret && schema.returns.empty()) return out + "...";
  if (schema.returns.size() == 1 && !schema.is_varret) {
    std::string only = argument_text(schema.returns[0], resolved);
    // A single tuple, or list of tuples, needs extra parentheses to not read as several returns.
    return out + (only[0] == '(' ? "(" + only + ")" : only);
  }
  out += "(";
  for (std::size_t i = 0; i < schema.returns.size(); ++i) {
    if (i) out += ", ";
    out += argument_text(schema.returns[i], resolved);
  }
  if (schema.is_varret) out += ", ...";
  return out + ")";
}

}  // namespace
}  // namespace detail

std::string OperatorName::str() const {
  return overload_name.empty() ? qualified_name() : qualified_name() + "." + overload_name;
}

std::string OperatorName::qualified_name() const { return ns.empty() ? name : ns + "::" + name; }

std::string AliasInfo::str() const {
  if (shorthand) return "!";
  std::string out = "(" + detail::joined(before) + (is_write ? "!" : "");
  if (after != before) out += " -> " + detail::joined(after);
  return out + ")";
}

std::string DefaultValue::str() const { return text.empty() ? resolved_str() : text; }

std::string DefaultValue::resolved_str() const { return std::visit(detail::ValueText{}, value); }

std::string Argument::type_str() const { return detail::annotated(type, aliases, 0, false); }

std::string Argument::str() const { return detail::argument_text(*this, false); }

std::string FunctionSchema::str() const { return detail::schema_text(*this, false); }

std::string FunctionSchema::resolved_str() const { return detail::schema_text(*this, true); }

std::ostream& operator<<(std::ostream& out, const OperatorName& name) { return out << name.str(); }

std::ostream& operator<<(std::ostream& out, const FunctionSchema& schema) {
  return out << schema.str();
}

}  // namespace lamella
