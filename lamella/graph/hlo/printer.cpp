// Printing XLA's HLO text.
#include <algorithm>
#include <charconv>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/attribute_scanner.h"
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (code < 32 || code >= 127) {  // three octal digits
      out += '\\';
      for (int shift : {6, 3, 0}) out += static_cast<char>('0' + (code >> shift & 7));
    } else {
      out += c;
    }
  }
  return out += '"';
}

namespace {

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}
  std::string take() { return std::move(out_); }

  void module(const Module& module) {
    out_ += str("HloModule ", module.name);
    if (module.is_scheduled) out_ += ", is_scheduled=true";
    if (!module.input_output_aliases.empty()) aliases(module);
    if (module.entry_result_layout != nullptr) {
      out_ += ", entry_computation_layout={(";
      for (size_t i = 0; i < module.entry_parameter_layouts.size(); ++i) {
        if (i != 0) out_ += ", ";
        if (i >= 5 && i % 5 == 0) out_ += str("/*index=", i, "*/");
        module.entry_parameter_layouts[i]->append_to(&out_, true);
      }
      out_ += ")->";
      module.entry_result_layout->append_to(&out_, true);
      out_ += '}';
    }
    std::string_view tables;
    for (const auto& [key, value] : module.attributes) {
      if (key == kSourceTables) {
        tables = value;
      } else {
        out_ += str(", ", key, "=", value);
      }
    }
    out_ += "\n\n";
    if (!tables.empty()) out_ += str(tables, "\n\n\n");
    for (const Computation* one : module.computations) {
      computation(*one);
      out_ += '\n';
    }
  }
  void computation(const Computation& one) {
    if (one.parent->entry == &one) out_ += "ENTRY ";
    name(one.name);
    out_ += " {\n";
    for (const Instruction* i : one.instructions) {
      out_ += i == one.root ? "  ROOT " : "  ";
      instruction(*i);
      out_ += '\n';
    }
    out_ += '}';
    if (!one.attributes.empty()) out_ += str(", ", one.attributes);
    out_ += '\n';
  }
  void instruction(const Instruction& one) {
    name(one.name);
    out_ += " = ";
    one.shape->append_to(&out_, true);
    out_ += ' ';
    out_ += opcode_name(one.opcode);
    out_ += '(';
    if (one.opcode == Opcode::Constant) {
      const bool elide =
          one.shape->is_array() && one.literal->bytes() > options_.most_constant_bytes;
      elide ? void(out_ += "{...}") : one.literal->append_to(&out_);
    } else if (one.opcode == Opcode::Parameter) {
      number(one.parameter_number);
    }
    for (size_t i = 0; i < one.operands.size(); ++i) {
      if (i != 0) out_ += ", ";
      if (options_.operand_shapes) {
        if (i >= 5 && i % 5 == 0) out_ += str("/*index=", i, "*/");
        one.operands[i]->shape->append_to(&out_, true);
        out_ += ' ';
      }
      name(one.operands[i]->name);
    }
    out_ += ')';
    for (const Attribute& attribute : one.attributes) {
      if (attribute.key == AttributeKey::Metadata && !options_.metadata) continue;
      if (attribute.key != AttributeKey::BackendConfig) named(attribute);
    }
    // XLA prints it last.
    if (const Attribute* config = one.find(AttributeKey::BackendConfig)) named(*config);
  }
  void named(const Attribute& attribute) {
    out_ += ", ";
    out_ += attribute_name(attribute.key);
    out_ += '=';
    value(attribute);
  }
  void value(const Attribute& a);

 private:
  void name(std::string_view text) {
    if (options_.percent || is_keyword(text)) out_ += '%';
    out_ += text;
  }
  void number(int64_t value) {
    char buffer[24];
    auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
    out_.append(buffer, static_cast<size_t>(end - buffer));
  }
  template <class T, class F>
  void list(std::span<T> values, const char* between, F&& print) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i != 0) out_ += between;
      print(values[i]);
    }
  }
  void aliases(const Module& module) {
    out_ += ", input_output_alias={ ";
    for (size_t i = 0; i < module.input_output_aliases.size(); ++i) {
      const InputOutputAlias& alias = module.input_output_aliases[i];
      if (i != 0) out_ += ", ";
      out_ += str(braced(alias.output), ": (", alias.parameter, ", ", braced(alias.parameter_index),
                  ", ", alias.must ? "must-alias" : "may-alias", ")");
    }
    out_ += " }";
  }
  void window(std::span<const WindowDimension> dimensions) {
    const char* between = "{";
    auto part = [&](const char* what, auto differs, auto print) {
      bool any = false;
      for (const WindowDimension& d : dimensions) any |= differs(d);
      if (!any) return;
      out_ += std::exchange(between, " ");
      out_ += what;
      out_ += '=';
      list(dimensions, "x", print);
    };
    auto always = [](const WindowDimension&) { return true; };
    part("size", always, [&](const auto& d) { number(d.size); });
    part(
        "stride", [](const auto& d) { return d.stride != 1; },
        [&](const auto& d) { number(d.stride); });
    part(
        "pad", [](const auto& d) { return d.padding_low != 0 || d.padding_high != 0; },
        [&](const auto& d) { out_ += str(d.padding_low, "_", d.padding_high); });
    part(
        "lhs_dilate", [](const auto& d) { return d.base_dilation != 1; },
        [&](const auto& d) { number(d.base_dilation); });
    part(
        "rhs_dilate", [](const auto& d) { return d.window_dilation != 1; },
        [&](const auto& d) { number(d.window_dilation); });
    part(
        "rhs_reversal", [](const auto& d) { return d.reversal; },
        [&](const auto& d) { number(d.reversal ? 1 : 0); });
    if (dimensions.empty()) out_ += '{';
    out_ += '}';
  }
  void dim_labels(const ConvolutionDimensions& d) {
    auto part = [&](int64_t a, char first, int64_t b, char second,
                    const std::vector<int64_t>& spatial) {
      int64_t last = std::max(a, b);
      for (int64_t place : spatial) last = std::max(last, place);
      std::string text(static_cast<size_t>(last) + 1, '?');
      text[static_cast<size_t>(a)] = first;
      text[static_cast<size_t>(b)] = second;
      for (size_t i = 0; i < spatial.size(); ++i) {
        text[static_cast<size_t>(spatial[i])] = static_cast<char>('0' + i);
      }
      out_ += text;
    };
    part(d.input_batch, 'b', d.input_feature, 'f', d.input_spatial);
    out_ += '_';
    part(d.kernel_input_feature, 'i', d.kernel_output_feature, 'o', d.kernel_spatial);
    out_ += "->";
    part(d.output_batch, 'b', d.output_feature, 'f', d.output_spatial);
  }

  PrintOptions options_;
  std::string out_;
};

void Printer::value(const Attribute& a) {
  switch (attribute_kind(a.key)) {
    case AttributeKind::Integer:
      return number(a.integer);
    case AttributeKind::Boolean:
      out_ += a.integer != 0 ? "true" : "false";
      return;
    case AttributeKind::Real: {
      Literal scalar = Literal::scalar(ElementType::F64, a.real);
      return scalar.append_to(&out_);
    }
    case AttributeKind::Integers:
      out_ += '{';
      list(a.integers(), ",", [&](int64_t v) { number(v); });
      out_ += '}';
      return;
    case AttributeKind::Word:
    case AttributeKind::Text:
      out_ += a.text();
      return;
    case AttributeKind::String:
      out_ += quoted(a.text());
      return;
    case AttributeKind::Window:
      return window(a.window());
    case AttributeKind::DimLabels:
      return dim_labels(*a.convolution);
    case AttributeKind::Padding:
      list(a.padding(), "x", [&](const PaddingDimension& d) {
        out_ += str(d.low, "_", d.high);
        if (d.interior != 0) out_ += str("_", d.interior);
      });
      return;
    case AttributeKind::Slices: {
      bool strides = false;
      for (const SliceDimension& d : a.slices()) strides |= d.stride != 1;
      out_ += '{';
      list(a.slices(), ", ", [&](const SliceDimension& d) {
        out_ += str("[", d.start, ":", d.limit);
        if (strides) out_ += str(":", d.stride);
        out_ += ']';
      });
      out_ += '}';
      return;
    }
    case AttributeKind::Computation:
      return name(a.computation->name);
    case AttributeKind::Computations:
      out_ += '{';
      list(a.computations(), ", ", [&](const Computation* one) { name(one->name); });
      out_ += '}';
      return;
    case AttributeKind::Instructions:
      out_ += '{';
      list(a.instructions(), ", ", [&](const Instruction* one) { name(one->name); });
      out_ += '}';
      return;
    case AttributeKind::Shapes:
      out_ += '{';
      list(a.shapes(), ", ", [&](const Shape* one) { one->append_to(&out_, true); });
      out_ += '}';
      return;
    case AttributeKind::ShapeOf:
      return a.shape->append_to(&out_, true);
    case AttributeKind::Aliasing:
      out_ += '{';
      list(a.aliases(), ", ", [&](const OperandAlias& one) {
        out_ += str(braced(one.output), ": (", one.operand, ", ", braced(one.operand_index), ")");
      });
      out_ += '}';
      return;
  }
}

}  // namespace

std::string to_string(const Module& module, const PrintOptions& options) {
  Printer printer(options);
  printer.module(module);
  return printer.take();
}
std::string to_string(const Computation& computation, const PrintOptions& options) {
  Printer printer(options);
  printer.computation(computation);
  return printer.take();
}
std::string to_string(const Instruction& instruction, const PrintOptions& options) {
  Printer printer(options);
  printer.instruction(instruction);
  return printer.take();
}
std::string to_string(const Attribute& attribute, const PrintOptions& options) {
  Printer printer(options);
  printer.value(attribute);
  return printer.take();
}

}  // namespace lamella::hlo
