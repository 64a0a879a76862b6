// Emits derivatives: for each operator the functions of its formulas and a constant table, and the
// list that assigns tables to operators.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "codegen/cpp.h"
#include "codegen/derivative_table.h"
#include "lamella/abi/autograd.h"

namespace lamella::codegen {
namespace {

const char* save_name(int what) {
  constexpr std::array<const char*, 11> names = {"VALUE",   "SIZES", "STRIDES", "DTYPE",
                                                 "DEVICE",  "DIM",   "NUMEL",   "STORAGE_OFFSET",
                                                 "DEFINED", "COUNT", "META"};
  return names.at(static_cast<std::size_t>(what));
}

std::string hex(std::uint64_t bits) {
  std::string text;
  do {
    text.insert(text.begin(), "0123456789abcdef"[bits & 15]);
    bits >>= 4;
  } while (bits != 0);
  return "0x" + text;
}

bool is_list(SchemaType type) { return type.holds_tensor() && type.without_optional().is_list(); }

// The C++ code of one table.
class TableWriter {
 public:
  TableWriter(const NativeFunction& function, const DerivativeTable& table,
              const EmitOptions& options)
      : f_(function), table_(table), options_(options), items_(saved_items(table)) {}

  std::string stem() const {
    return (f_.ns == "aten" ? "" : f_.ns + "_") + operator_struct(f_.schema) +
           (is_default() ? "" : "_" + table_.key);
  }

  // Functions and table; the table is derivative_of_STEM. `keyed`: the list of tables for keys, if
  // there is one, and its length.
  std::string write(const std::string& keyed = "nullptr", std::size_t keyed_count = 0) const {
    std::string out;
    if (!table_.backward.empty()) put(out, backward(), "\n");
    if (has_forward()) put(out, forward(), "\n");
    if (!table_.conditions.empty()) put(out, condition(), "\n");
    put(out, arrays(), table(keyed, keyed_count));
    return out;
  }

 private:
  using Role = FormulaUse::Role;

  bool is_default() const { return table_.key == "Default"; }
  std::size_t slot_of(std::size_t argument) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(table_.slots, argument) -
                                    table_.slots.begin());
  }
  bool has_forward() const {
    return std::ranges::any_of(table_.forward, [](const Formula& formula) {
      return formula.kind == Formula::Kind::kExpression ||
             formula.kind == Formula::Kind::kNotImplemented;
    });
  }
  const Argument& value_of(const FormulaUse& use) const {
    return use.role == Role::kReturn ? f_.schema.returns[use.index]
                                     : f_.schema.arguments[use.index];
  }

  // The type that holds a value other than a tensor.
  std::string held_type(const Argument& argument) const {
    std::string type = parameter_type(argument, f_);
    if (type.starts_with("const ")) type.erase(0, 6);
    if (type.ends_with("&")) type.pop_back();
    // Boxed lists of numbers do not store an array of Scalar, so the list is copied.
    if (type == "ArrayRef<Scalar>") type = "std::vector<Scalar>";
    return qualified(type, options_);
  }

  // `const TYPE NAME = ...;` for the value at `place`.
  std::string whole(const Argument& one, const std::string& name, const std::string& place) const {
    std::string out = "const ";
    if (is_list(one.type)) {
      put(out, qualified("TensorList ", options_), name, " = detail::value_in<",
          qualified("TensorList", options_), ">(", place, ");");
    } else if (one.type.holds_tensor()) {
      put(out, qualified("Tensor& ", options_), name, " = detail::tensor_in(", place, ");");
    } else {
      const std::string type = held_type(one);
      put(out, type, " ", name, " = detail::value_in<", type, ">(", place, ");");
    }
    return out;
  }

  // ---- Backward ----

  std::string saved_place(const FormulaUse& use, int what) const {
    const bool is_return = use.role == Role::kReturn;
    const auto found = std::ranges::find_if(items_, [&](const SavedItem& item) {
      return item.what == what && item.is_return == is_return && item.index == use.index;
    });
    return "call_->saved[" + std::to_string(found - items_.begin()) + "]";
  }

  // The declaration that a use needs, and the expression that replaces it in the formula.
  struct Place {
    std::string declaration;
    std::string text;
  };

  Place place_of(const FormulaUse& use) const {
    const std::string name = identifier(use.name);
    std::vector<std::string> saved;
    for (const int what : saved_for(use.attribute)) saved.push_back(saved_place(use, what));
    const std::string places = join(saved, ", ");
    const bool list = is_list(value_of(use).type);
    const auto made = [&](const char* type, const char* suffix, const std::string& value) {
      const std::string local = use.name + suffix;
      return Place{"const " + qualified(type, options_) + " " + local + " = " +
                       qualified(value, options_) + ";",
                   local};
    };
    switch (use.attribute) {
      case Attribute::kValue:
        return {whole(value_of(use), name, places), name};
      case Attribute::kSizes:
      case Attribute::kStrides: {
        const bool sizes = use.attribute == Attribute::kSizes;
        if (list) {
          return made("std::vector<IntArrayRef>", "_sizes_",
                      "detail::int_lists_in(" + places + ")");
        }
        if (use.optional) {
          return made("OptionalIntArrayRef", sizes ? "_sizes_opt_" : "_strides_opt_",
                      "detail::value_in<OptionalIntArrayRef>(" + places + ")");
        }
        return made("IntArrayRef", sizes ? "_sizes_" : "_strides_",
                    "detail::ints_in(" + places + ")");
      }
      case Attribute::kSize:
      case Attribute::kStride: {
        Place place =
            made("IntArrayRef", use.attribute == Attribute::kSize ? "_sizes_" : "_strides_",
                 "detail::ints_in(" + places + ")");
        place.text = "detail::entry_at(" + place.text + ", ";
        return place;
      }
      case Attribute::kDtype:
        if (list) {
          return made("std::vector<ScalarType>", "_dtypes_", "detail::dtypes_in(" + places + ")");
        }
        return made("ScalarType", "_dtype_", "detail::dtype_in(" + places + ")");
      case Attribute::kDevice:
        return made("Device", "_device_", "detail::device_in(" + places + ")");
      case Attribute::kOptions:
        return made("TensorOptions", "_options_", "detail::options_in(" + places + ")");
      case Attribute::kLayout:
        return made("Layout", "_layout_", "detail::tensor_in(" + places + ").layout()");
      case Attribute::kDim:
        return made("int64_t", "_dim_", "detail::int_in(" + places + ")");
      case Attribute::kNumel:
        return made("int64_t", "_numel_", "detail::int_in(" + places + ")");
      case Attribute::kOffset:
        return made("int64_t", "_offset_", "detail::int_in(" + places + ")");
      case Attribute::kGeometry:
        return made("TensorGeometry", "_geometry_", "detail::geometry_in(" + places + ")");
      case Attribute::kZeros:
        return {"", "detail::zeros_in(" + places + ")"};
      case Attribute::kDefined:
        return made("bool", "_defined_", "detail::bool_in(" + places + ")");
      case Attribute::kCount:
        return made("size_t", "_count_", "static_cast<size_t>(detail::int_in(" + places + "))");
    }
    return {};
  }

  // The formula on one line, with each use replaced; declarations go to `before`.
  template <class F>
  std::string rewritten(const Formula& formula, std::vector<std::string>& before, F&& place) const {
    std::string text;
    std::size_t at = 0;
    for (const FormulaUse& use : formula.uses) {
      const Place made = place(use);
      if (!made.declaration.empty() &&
          std::ranges::find(before, made.declaration) == before.end()) {
        before.push_back(made.declaration);
      }
      put(text, formula.text.substr(at, use.begin - at), made.text);
      at = use.end;
    }
    put(text, formula.text.substr(at));
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
    return text;
  }

  std::string backward() const {
    std::string out;
    put(out, "static lamella_status backward_of_", stem(),
        "(const lamella_backward* call_) noexcept try {\n");
    const bool single = std::ranges::any_of(table_.backward, &Formula::uses_grad);
    const bool several = std::ranges::any_of(table_.backward, [](const Formula& formula) {
      return formula.uses_grads || !formula.named_grads.empty();
    });
    if (single) {
      put(out, "  const ", qualified("Tensor& grad", options_), " = detail::gradients(call_)[",
          std::to_string(table_.main_return), "];\n",
          "  if (!grad.defined()) return LAMELLA_OK;\n");
    } else if (several) {
      put(out, "  const ", qualified("TensorList grads", options_),
          " = detail::gradients(call_);\n",
          "  if (!detail::any_defined(grads)) return LAMELLA_OK;\n");
      std::set<std::size_t> named;
      for (const Formula& formula : table_.backward) {
        named.insert(formula.named_grads.begin(), formula.named_grads.end());
      }
      for (const std::size_t index : named) {
        put(out, "  const ", qualified("Tensor& ", options_), "grad_",
            f_.schema.returns[index].name, " = grads[", std::to_string(index), "];\n");
      }
    } else {
      put(out, "  if (!detail::any_defined(detail::gradients(call_))) return LAMELLA_OK;\n");
    }
    for (const Formula& formula : table_.backward) put(out, backward(formula));
    put(out, "  return LAMELLA_OK;\n} catch (...) {\n",
        "  return detail::status_of_current_exception();\n}\n");
    return out;
  }

  std::string backward(const Formula& formula) const {
    std::vector<std::string> slots;
    std::vector<std::string> needed;
    for (const std::size_t argument : formula.targets) {
      slots.push_back(std::to_string(slot_of(argument)));
      needed.push_back("detail::is_needed(call_, " + slots.back() + ")");
    }
    std::string out;
    put(out, "  if (", join(needed, " || "), ") {\n");
    if (formula.kind == Formula::Kind::kNotImplemented) {
      std::vector<std::string> names;
      for (const std::size_t i : formula.targets) names.push_back(f_.schema.arguments[i].name);
      put(out, "    detail::throw_not_implemented(", formula.what, ", ",
          in_quotes(join(names, "', '")), ");\n  }\n");
      return out;
    }
    std::vector<std::string> before;
    if (formula.uses_mask) {
      before.push_back("const std::array<bool, " + std::to_string(slots.size()) +
                       "> grad_input_mask = {" + join(needed, ", ") + "};");
    }
    const std::string text =
        rewritten(formula, before, [&](const FormulaUse& use) { return place_of(use); });
    for (const std::string& line : before) put(out, "    ", line, "\n");
    if (formula.loops) {
      put(out, "    detail::set_each_result(call_, ", slots[0], ", [&](size_t i) { return ", text,
          "; });\n");
    } else if (slots.size() > 1) {
      put(out, "    detail::set_results<", join(slots, ", "), ">(call_, ", text, ");\n");
    } else {
      put(out, "    detail::set_result(call_, ", slots[0], ", ", text, ");\n");
    }
    put(out, "  }\n");
    return out;
  }

  // ---- Forward mode ----

  Place forward_place(const FormulaUse& use) const {
    const std::string name = identifier(use.name);
    const std::string index = std::to_string(use.index);
    if (use.role == Role::kReturn) {
      return {whole(value_of(use), name, "call_->returns[" + index + "]"), name};
    }
    if (use.role == Role::kArgument) {
      return {whole(value_of(use), name, "call_->arguments[" + index + "]"), name};
    }
    const std::string slot = std::to_string(slot_of(use.index));
    if (is_list(value_of(use).type)) {
      return {"const " + qualified("TensorList ", options_) + name + " = detail::tangents(call_, " +
                  slot + ");",
              name};
    }
    return {"const " + qualified("Tensor ", options_) + name + " = detail::tangent_in(call_, " +
                slot + ", " + index + ");",
            name};
  }

  std::string forward() const {
    std::string out;
    put(out, "static lamella_status forward_of_", stem(),
        "(const lamella_forward* call_) noexcept try {\n");
    for (const Formula& formula : table_.forward) put(out, forward(formula));
    put(out, "  return LAMELLA_OK;\n} catch (...) {\n",
        "  return detail::status_of_current_exception();\n}\n");
    return out;
  }

  std::string forward(const Formula& formula) const {
    std::vector<std::string> returns;
    for (const std::size_t index : formula.targets) returns.push_back(std::to_string(index));
    std::set<std::size_t> used;
    for (const FormulaUse& use : formula.uses) {
      if (use.role == Role::kTangent) used.insert(slot_of(use.index));
    }
    if (used.empty()) {
      for (std::size_t slot = 0; slot < table_.slots.size(); ++slot) used.insert(slot);
    }
    std::vector<std::string> given;
    for (const std::size_t slot : used) {
      given.push_back("detail::has_tangent(call_, " + std::to_string(slot) + ")");
    }
    std::string out;
    put(out, "  if (", join(given, " || "), ") {\n");
    if (formula.kind == Formula::Kind::kNotImplemented) {
      put(out, "    detail::throw_not_implemented(", formula.what, ", ", in_quotes(formula.names),
          ");\n  }\n");
      return out;
    }
    std::vector<std::string> before;
    const std::string text =
        rewritten(formula, before, [&](const FormulaUse& use) { return forward_place(use); });
    for (const std::string& line : before) put(out, "    ", line, "\n");
    if (returns.size() > 1) {
      put(out, "    detail::set_tangents<", join(returns, ", "), ">(call_, ", text, ");\n");
    } else {
      put(out, "    detail::set_tangent(call_, ", returns[0], ", ", text, ");\n");
    }
    put(out, "  }\n");
    return out;
  }

  // ---- The table ----

  std::string condition() const {
    std::string out;
    put(out, "static lamella_status condition_of_", stem(),
        "(const lamella_value* arguments_, uint64_t* returns_) noexcept try {\n");
    std::vector<std::string> before;
    std::string after;
    for (const Formula& formula : table_.conditions) {
      const std::string text = rewritten(formula, before, [&](const FormulaUse& use) {
        const std::string name = identifier(use.name);
        return Place{whole(value_of(use), name, "arguments_[" + std::to_string(use.index) + "]"),
                     name};
      });
      put(after, "  if (!(", text, ")) *returns_ &= ~uint64_t{",
          hex(std::uint64_t{1} << formula.targets[0]), "};\n");
    }
    for (const std::string& line : before) put(out, "  ", line, "\n");
    put(out, after, "  return LAMELLA_OK;\n} catch (...) {\n",
        "  return detail::status_of_current_exception();\n}\n");
    return out;
  }

  std::string arrays() const {
    std::string out;
    if (!table_.slots.empty()) {
      std::vector<std::string> slots;
      for (const std::size_t argument : table_.slots) slots.push_back(std::to_string(argument));
      put(out, "static constexpr uint16_t slots_of_", stem(), "[] = {", join(slots, ", "), "};\n");
    }
    if (!items_.empty()) {
      put(out, "static constexpr lamella_saved saved_of_", stem(), "[] = {\n");
      for (const SavedItem& item : items_) {
        put(out, "    {LAMELLA_SAVE_", save_name(item.what), ", ", item.is_return ? "1" : "0", ", ",
            std::to_string(item.index), ", 0, ", hex(item.used_by), "},\n");
      }
      put(out, "};\n");
    }
    return out;
  }

  std::string flags() const {
    if (table_.slots.empty()) return "LAMELLA_NOT_DIFFERENTIABLE";
    for (const Formula& formula : table_.forward) {
      if (formula.kind == Formula::Kind::kAutoLinear) return "LAMELLA_FORWARD_LINEAR";
      if (formula.kind == Formula::Kind::kAutoElementWise) return "LAMELLA_FORWARD_ELEMENTWISE";
    }
    return "0";
  }

  // Slots whose tangents no formula uses.
  std::uint64_t unimplemented() const {
    std::uint64_t slots = 0;
    for (const Formula& formula : table_.backward) {
      if (formula.kind != Formula::Kind::kNotImplemented) continue;
      for (const std::size_t argument : formula.targets) {
        const bool taken = std::ranges::any_of(table_.forward, [&](const Formula& forward) {
          return forward.kind == Formula::Kind::kNotImplemented ||
                 std::ranges::any_of(forward.uses, [&](const FormulaUse& use) {
                   return use.role == Role::kTangent && use.index == argument;
                 });
        });
        if (!taken) slots |= std::uint64_t{1} << slot_of(argument);
      }
    }
    return slots;
  }

  std::string table(const std::string& keyed, std::size_t keyed_count) const {
    std::uint64_t returns = 0;
    for (std::size_t i = 0; i < table_.returns.size(); ++i) {
      if (table_.returns[i]) returns |= std::uint64_t{1} << i;
    }
    std::string out;
    put(out, options_.out_of_tree || !is_default() ? "static constexpr" : "extern constexpr",
        " lamella_derivative derivative_of_", stem(), " = {\n    ", in_quotes(table_.node), ", ",
        table_.backward.empty() ? "nullptr" : "backward_of_" + stem(), ", ",
        has_forward() ? "forward_of_" + stem() : "nullptr", ",\n    ",
        table_.slots.empty() ? "nullptr" : "slots_of_" + stem(), ", ",
        items_.empty() ? "nullptr" : "saved_of_" + stem(), ", ",
        std::to_string(table_.slots.size()), ", ", std::to_string(items_.size()), ", ",
        hex(returns), ", ", flags(), ", 0, ", hex(unimplemented()), ", ", keyed, ", ",
        std::to_string(keyed_count), ", 0, ",
        table_.conditions.empty() ? "nullptr" : "condition_of_" + stem(), "};\n");
    return out;
  }

  const NativeFunction& f_;
  const DerivativeTable& table_;
  const EmitOptions& options_;
  std::vector<SavedItem> items_;
};

// The tables of an entry, those for keys first; `stem` is set to that of the entry.
std::string tables(const Derivative& entry, const EmitOptions& options, std::string& stem) {
  std::string out;
  std::string list;
  std::size_t count = 0;
  for (const DerivativeTable& table : entry.tables) {
    if (table.key == "Default") continue;
    const TableWriter writer(*entry.function, table, options);
    put(out, writer.write(), "\n");
    put(list, "    {", in_quotes(table.key), ", &derivative_of_", writer.stem(), "},\n");
    ++count;
  }
  const auto main = std::ranges::find(entry.tables, "Default", &DerivativeTable::key);
  const TableWriter writer(*entry.function, *main, options);
  stem = writer.stem();
  if (count == 0) return out + writer.write();
  put(out, "static constexpr lamella_keyed_derivative keyed_of_", stem, "[] = {\n", list, "};\n\n",
      writer.write("keyed_of_" + stem, count));
  return out;
}

std::vector<const NativeFunction*> forms(const Derivative& entry) {
  std::vector<const NativeFunction*> list = {entry.function};
  if (entry.inplace != nullptr) list.push_back(entry.inplace);
  return list;
}

std::string file_name(const Location& place) {
  const std::string& path = place.file->path();
  return path.substr(path.rfind('/') + 1);
}

// The file of an operator depends only on its name, so that a new entry changes only its own file.
std::size_t shard_of(const Derivative& entry) {
  std::uint32_t hash = 2166136261u;
  for (const char c : entry.function->full_name()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return (hash >> 16) % kDerivativeFiles;
}

void emit_in_tree(const DerivativeModel& model, const EmitOptions& options, Files& files) {
  std::array<std::string, kDerivativeFiles> bodies;
  std::string declarations;
  std::map<std::string, std::string> rows;  // by file
  for (const Derivative& entry : model.entries) {
    std::string stem;
    const std::string text = tables(entry, options, stem);
    put(bodies[shard_of(entry)], "\n// ", entry.function->full_name(), "\n", text);
    put(declarations, "extern const lamella_derivative derivative_of_", stem, ";\n");
    for (const NativeFunction* form : forms(entry)) {
      put(rows[file_name(entry.where)], "    {", in_quotes(form->full_name()), ", &derivative_of_",
          stem, ", ", std::to_string(entry.where.line), "},\n");
    }
  }
  for (std::size_t i = 0; i < kDerivativeFiles; ++i) {
    std::string text = banner(options, "Formulas of derivatives.");
    put(text, "#include \"lamella/api/derivative_calls.h\"\n",
        "#include \"lamella/api/functions.h\"\n",
        "#include \"lamella/layers/autograd/formulas/formulas.h\"\n\n",
        "namespace lamella::derivatives {\n", bodies[i],
        "\n}  // namespace lamella::derivatives\n");
    files["lamella/derivatives_" + std::to_string(i) + ".cpp"] = text;
  }
  std::string text = banner(options, "Which derivative is whose.");
  put(text, "#include \"lamella/api/operator_tables.h\"\n\nnamespace lamella {\n\n",
      "namespace derivatives {\n", declarations, "}  // namespace derivatives\n\n",
      "void register_generated_derivatives() {\n");
  if (!rows.empty()) put(text, "  using namespace derivatives;\n");
  for (const auto& [file, lines] : rows) {
    const std::string name = "rows_of_" + c_identifier(file);
    put(text, "  static const DerivativeRow ", name, "[] = {\n", lines,
        "  };\n  register_derivatives(", in_quotes(file), ", ", name, ");\n");
  }
  put(text, "}\n\n}  // namespace lamella\n");
  files["lamella/register_derivatives.cpp"] = text;
}

void emit_out_of_tree(const DerivativeModel& model, const EmitOptions& options, Files& files) {
  std::string text = banner(options, "Derivatives of this library's operators.");
  put(text, "#include \"lamella/derivatives.h\"\n#include \"lamella/lamella.h\"\n#include \"",
      options.target, "/functions.h\"\n");
  for (const std::string& header : options.derivative_headers) {
    put(text, "#include \"", header, "\"\n");
  }
  put(text, "\nnamespace {\n\nusing namespace ::lamella;\nnamespace detail = ::lamella::detail;\n");
  std::map<std::string, std::string> rows;
  std::string bodies;
  for (const Derivative& entry : model.entries) {
    std::string stem;
    put(bodies, "\n// ", entry.function->full_name(), "\n", tables(entry, options, stem));
    for (const NativeFunction* form : forms(entry)) {
      FunctionSchema bare = form->schema;
      bare.name.ns.clear();
      put(rows[form->ns], "  m.derivative(", in_quotes(bare.name.str()), ", &derivative_of_", stem,
          ", ", in_quotes(file_name(entry.where)), ", ", std::to_string(entry.where.line), ");\n");
    }
  }
  for (const auto& [ns, lines] : rows) put(text, "using namespace ::", ns, ";\n");
  put(text, bodies, "\n}  // namespace\n");
  for (const auto& [ns, lines] : rows) {
    put(text, "\nLAMELLA_LIBRARY_FRAGMENT(", ns, ", m) {\n", lines, "}\n");
  }
  put(text, "\nextern \"C\" __attribute__((visibility(\"default\"))) void lamella_derivatives_",
      c_identifier(options.target), "() {}\n");
  files[options.target + "/derivatives.cpp"] = text;
}

}  // namespace

void emit_derivatives(const DerivativeModel& model, const EmitOptions& options, Files& files) {
  EmitOptions mine = options;
  if (!options.derivatives_source.empty()) mine.source = options.derivatives_source;
  if (!options.out_of_tree) {
    emit_in_tree(model, mine, files);
  } else if (!options.derivatives_source.empty()) {
    emit_out_of_tree(model, mine, files);
  }
}

}  // namespace lamella::codegen
