// Every row's kernel is a small function that calls the kernel that the declaration names. Around
// the call it has only what the declaration requires: the device check and guard for devices other
// than the CPU, and the count of writes.
#include "codegen/kernel_tables.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "codegen/cpp.h"

namespace lamella::codegen {
namespace {

bool is_composite(std::string_view key) { return key.starts_with("Composite"); }

// The tables of keys with many kernels are split into several files, which compile in parallel. An
// operator's name decides its file, so that a new operator changes only one file.
struct TableFile {
  std::string_view stem;
  unsigned parts;
};
constexpr std::array<TableFile, 5> kFiles = {{{"register_CPU", 4},
                                              {"register_Meta", 4},
                                              {"register_CUDA", 1},
                                              {"register_composite", 3},
                                              {"register_other", 1}}};

std::string part_name(const TableFile& file, unsigned part) {
  return std::string(file.stem) + (file.parts > 1 ? "_" + std::to_string(part) : "");
}

std::string file_of(std::string_view key, const NativeFunction& f) {
  const std::string stem = key == "CPU" || key == "Meta" || key == "CUDA"
                               ? "register_" + std::string(key)
                           : is_composite(key) ? "register_composite"
                                               : "register_other";
  const auto* file = std::ranges::find(kFiles, stem, &TableFile::stem);
  unsigned hash = 2166136261;  // FNV-1a
  for (char c : f.schema.name.base_name()) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619;
  return part_name(*file, (hash >> 8) % file->parts);
}

class Registrations {
 public:
  Registrations(const Model& model, const EmitOptions& options)
      : model_(model), options_(options) {}

  void run() {
    for (const NativeFunction& function : model_.functions) {
      const NativeFunction* root = structured_root(function, model_);
      if (root != nullptr) {
        structured(function, *root);
        plain_rows(function, true);
      } else if (function.autogen_of != nullptr) {
        generated(function);
      } else {
        plain_rows(function, false);
      }
    }
  }

  std::map<std::string, KernelTable> take() { return std::move(tables_); }

 private:
  std::string op_name(const NativeFunction& f) const { return f.schema.name.name; }

  void row(const NativeFunction& f, const std::string& key, const std::string& body, int line) {
    KernelTable& table = tables_[file_of(key, f)];
    const std::string name = key + "_" + f.ns + "_" + operator_struct(f.schema);
    std::string list = declare(parameters(f), false);
    put(table.functions, return_type(f), " ", name, "(", list, ") {\n", check_writable(f), body,
        "}\n");
    if (options_.out_of_tree) {
      FunctionSchema bare = f.schema;
      bare.name.ns.clear();
      put(table.rows[f.ns + " " + key], "  m.impl(", in_quotes(bare.name.str()), ", LAMELLA_FN(&",
          name, "));\n");
    } else {
      put(table.rows[key], "    kernel_row<&", name, ">(", in_quotes(f.full_name()), ", ",
          std::to_string(line - f.where.line), "),\n");
    }
  }

  // Checks before a call on a device other than the CPU. `root` says what the kernel accepts: a
  // TensorIterator reads numbers (CPU tensors without dimensions) with any device; so does a kernel
  // without a check of its own, except for its first and written arguments. On Meta such a kernel
  // could not notice the mistake, so the check is always made.
  std::string before(const NativeFunction& f, const NativeFunction& root, const std::string& key,
                     bool guard) const {
    std::string out;
    if (key == "CPU" || is_composite(key)) return out;
    std::vector<const Argument*> tensors;
    bool list = false;
    for (const Argument& argument : f.schema.arguments) {
      if (!argument.type.holds_tensor()) continue;
      tensors.push_back(&argument);
      list = list || argument.type.is_list();
    }
    const bool checked = root.device_check == DeviceCheck::kExactSame;
    const bool iterates = root.structured_inherits.starts_with("TensorIterator");
    if ((checked || key == "Meta") && (tensors.size() > 1 || list)) {
      put(out, "  detail::SameDevice device_check_(", in_quotes(op_name(f)), ");\n");
      for (const Argument* argument : tensors) {
        const bool number =
            !argument->is_write() && (iterates || (!checked && argument != tensors.front()));
        const bool indices = argument->type.is_list() && argument->type.element().is_optional();
        put(out, "  device_check_.",
            indices  ? "see_indices("
            : number ? "see_number("
                     : "see(",
            in_quotes(argument->name), ", ", identifier(argument->name), ");\n");
      }
    }
    if (guard && key != "Meta") {
      const Argument* first = nullptr;
      for (const Argument& argument : f.schema.arguments) {
        if (argument.type.holds_tensor()) {
          first = &argument;
          break;
        }
      }
      const Argument* device = f.schema.find_argument("device");
      if (options_.out_of_tree) {
        const std::string from =
            first != nullptr ? "device_of(" + identifier(first->name) + ")" : "device";
        if (first != nullptr || device != nullptr) {
          put(out, "  const OptionalDeviceGuard guard_(", from, ");\n");
        }
      } else if (first != nullptr) {
        put(out, "  const detail::DeviceGuard guard_(", identifier(first->name), ");\n");
      } else if (device != nullptr) {
        put(out, "  const detail::DeviceGuard guard_(device);\n");
      }
    }
    return out;
  }

  // The check before a call of an operator that writes to `out` and has no derivative of its own
  // that would refuse arguments with gradients.
  std::string without_gradients(const NativeFunction& f) const {
    std::string out;
    bool writes_out = false;
    for (const Argument& argument : f.schema.arguments) {
      if (!argument.type.holds_tensor()) continue;
      writes_out = writes_out || argument.is_out();
      put(out, "  gradients_.see(", in_quotes(argument.name), ", ", identifier(argument.name),
          ");\n");
    }
    if (!writes_out) return "";
    return "  const detail::NoGradientsWithOut gradients_(" + in_quotes(op_name(f)) + ");\n" + out;
  }

  static std::vector<std::string> written(const NativeFunction& f) {
    std::vector<std::string> names;
    for (const Argument& argument : f.schema.arguments) {
      if (argument.is_write() && argument.type.holds_tensor())
        names.push_back(identifier(argument.name));
    }
    return names;
  }

  // The checks that come before all writes of one of the library's own kernels.
  std::string check_writable(const NativeFunction& f) const {
    std::string out;
    if (options_.out_of_tree || is_bookkeeping(f)) return out;
    for (const Argument& argument : f.schema.arguments) {
      if (!argument.is_write() || !argument.type.holds_tensor()) continue;
      put(out, "  detail::check_writable(", in_quotes(op_name(f)), ", ", in_quotes(argument.name),
          ", ", identifier(argument.name), ");\n");
    }
    return out;
  }

  // These change a tensor's autograd state, not its elements.
  bool is_bookkeeping(const NativeFunction& f) const {
    return op_name(f) == "detach_" || op_name(f) == "requires_grad_";
  }

  // Whether the results of the library's own operator are new tensors, by its schema.
  bool makes_tensors(const NativeFunction& f) const {
    return !options_.out_of_tree &&
           std::ranges::all_of(f.schema.returns,
                               [](const Argument& result) { return result.alias() == nullptr; }) &&
           std::ranges::any_of(f.schema.returns,
                               [](const Argument& result) { return result.type.holds_tensor(); });
  }
  std::string made(const NativeFunction& f, const std::string& call) const {
    return makes_tensors(f) ? "detail::as_made(" + call + ")" : call;
  }

  // `call`, with its writes counted. A backend kernel writes memory itself; a composite one may
  // call operators that count their writes, and is then not counted again.
  std::string call_and_count(const NativeFunction& f, const std::string& call,
                             bool composite) const {
    const std::vector<std::string> names =
        is_bookkeeping(f) ? std::vector<std::string>() : written(f);
    std::string out;
    if (names.empty()) {
      put(out, "  return ", made(f, call), ";\n");
      return out;
    }
    const bool once = composite || !options_.out_of_tree;
    for (const std::string& name : names) {
      if (once) {
        put(out, "  const uint64_t ", name, "_before_ = detail::writes_to(", name, ");\n");
      }
    }
    const std::string returns = return_type(f);
    if (returns == "void") {
      put(out, "  ", call, ";\n");
    } else {
      put(out, "  ", returns.ends_with("&") ? "auto&" : "auto", " result_ = ", call, ";\n");
    }
    for (const std::string& name : names) {
      if (once) {
        put(out, "  detail::wrote_", options_.out_of_tree ? "since(" : "once(", name, "_before_, ",
            name, ");\n");
      } else {
        put(out, "  detail::wrote(", name, ");\n");
      }
    }
    if (returns != "void") put(out, "  return result_;\n");
    return out;
  }

  void plain_rows(const NativeFunction& f, bool of_structured) {
    for (const auto& [key, kernel] : f.dispatch) {
      if (of_structured && f.structured && is_structured_key(key)) continue;
      const std::string call =
          f.alias_of.empty() ? "::" + kernel_namespace(kernel, f, options_) +
                                   "::" + identifier(kernel.name) + "(" + names(parameters(f)) + ")"
                             : call_of(*model_.alias_target(f), parameter_names(f));
      std::string body = before(f, f, key, f.device_guard);
      // The writes of a CompositeImplicit kernel are counted by the operators that it calls.
      if (key.starts_with("CompositeImplicit")) {
        put(body, without_gradients(f), "  return ", made(f, call), ";\n");
      } else {
        put(body, call_and_count(f, call, is_composite(key)));
      }
      row(f, key, body, kernel.where.line);
    }
  }

  // impl()'s arguments: members of meta()'s result replace the arguments that it precomputed.
  std::string impl_arguments(const NativeFunction& root, bool with_outputs) const {
    std::vector<std::string> list;
    for (const Parameter& p : functional_parameters(root)) {
      const auto replaced = std::ranges::find_if(root.precomputed, [&](const Precomputed& one) {
        return one.replaced == p.argument->name;
      });
      if (replaced == root.precomputed.end()) {
        list.push_back(p.name);
        continue;
      }
      for (const PrecomputedArgument& member : replaced->with)
        list.push_back("ahead_." + member.name);
    }
    for (const Precomputed& one : root.precomputed) {
      if (!one.replaced.empty()) continue;
      for (const PrecomputedArgument& member : one.with) list.push_back("ahead_." + member.name);
    }
    if (with_outputs) {
      for (size_t i = 0; i < output_names(root).size(); ++i) {
        list.push_back("op_.maybe_get_output(" + std::to_string(i) + ")");
      }
    }
    return join(list, ", ");
  }

  void structured(const NativeFunction& f, const NativeFunction& root) {
    for (const auto& [key, kernel] : structured_kernels(root)) {
      structured_row(
          f, root, key,
          "::" + kernel_namespace(kernel, root, options_) + "::structured_" + kernel.name,
          kernel.where.line);
    }
    if (f.find_kernel("Meta") == nullptr) {
      const std::string ns = options_.out_of_tree ? root.ns + "::meta" : "lamella::meta";
      structured_row(f, root, "Meta", "::" + ns + "::structured_" + structured_name(root, model_),
                     root.where.line);
    }
  }

  void structured_row(const NativeFunction& f, const NativeFunction& root, const std::string& key,
                      const std::string& type, int line) {
    const bool is_meta = key == "Meta";
    const std::vector<std::string> outputs = output_names(root);
    std::string body = before(f, root, key, true);
    // The outputs' names, for messages.
    std::vector<std::string> given;
    if (f.kind() == SchemaKind::kInplace) {
      given.push_back("self");
    } else if (f.kind() == SchemaKind::kOut) {
      for (const Argument& argument : f.schema.arguments) {
        if (argument.is_out()) given.push_back(argument.name);
      }
    }
    std::vector<std::string> literals;
    for (const std::string& name : given.empty() ? outputs : given)
      literals.push_back(in_quotes(name));
    put(body, "  static constexpr const char* names_[] = {", join(literals, ", "), "};\n",
        "  static constexpr OutputInfo info_{", in_quotes(op_name(f)), ", names_};\n");
    put(body, "  ", type, " op_;\n");
    std::vector<std::string> targets;
    for (const std::string& name : given) targets.push_back(identifier(name));
    // Kernels that iterate call no operators that write.
    const bool calls = !options_.out_of_tree && root.structured_inherits.empty();
    for (const std::string& name : targets) {
      if (calls)
        put(body, "  const uint64_t ", name, "_before_ = detail::writes_to(", name, ");\n");
    }
    switch (f.kind()) {
      case SchemaKind::kInplace:
        put(body, "  op_.begin_inplace(info_, self);\n");
        break;
      case SchemaKind::kOut:
        put(body, "  op_.begin_out(info_, ", join(targets, ", "), ");\n");
        break;
      default:
        put(body, "  op_.begin_functional(info_, ", std::to_string(outputs.size()), ");\n");
    }
    if (!given.empty() && root.structured_inherits.empty()) {
      put(body, read_arguments(f, root));
    }
    std::vector<std::string> meta_arguments;
    for (const Parameter& p : functional_parameters(root)) meta_arguments.push_back(p.name);
    put(body,
        root.precomputed.empty() ? "  " : "  [[maybe_unused]] const auto ahead_ = ", "op_.meta(",
        join(meta_arguments, ", "), ");\n");
    if (!is_meta) put(body, "  op_.impl(", impl_arguments(root, true), ");\n");
    if (given.empty()) {
      std::vector<std::string> taken;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const std::string one = "op_.take_output(" + std::to_string(i) + ")";
        taken.push_back(calls ? "detail::as_made(" + one + ")" : one);
      }
      put(body, "  return ", taken.size() == 1 ? taken[0] : "{" + join(taken, ", ") + "}", ";\n");
    } else {
      put(body, "  op_.", "finish(", join(targets, ", "), ");\n");
      for (const std::string& name : targets) {
        if (calls) put(body, "  detail::wrote_once(", name, "_before_, ", name, ");\n");
      }
      if (targets.size() == 1) {
        put(body, "  return ", targets[0], ";\n");
      } else if (return_type(f) != "void") {
        put(body, "  return {", join(targets, ", "), "};\n");
      }
    }
    row(f, key, body, line);
  }

  // Passes the arguments that are read to the kernel, for the check against the caller's outputs.
  std::string read_arguments(const NativeFunction& f, const NativeFunction& root) const {
    std::string self = "nullptr";
    std::vector<std::string> list;
    for (const Argument& argument : f.schema.arguments) {
      if (!argument.type.holds_tensor() || argument.is_write()) continue;
      if (argument.name == "self" && !argument.type.is_list() && has_inplace_form(root)) {
        self = "&self";
      } else {
        list.push_back(identifier(argument.name));
      }
    }
    if (self == "nullptr" && list.empty()) return {};
    list.insert(list.begin(), self);
    return "  op_.read_arguments(" + join(list, ", ") + ");\n";
  }
  bool has_inplace_form(const NativeFunction& root) const {
    return std::ranges::any_of(model_.groups, [&](const NativeFunctionGroup& group) {
      return group.inplace != nullptr && structured_root(*group.inplace, model_) == &root;
    });
  }

  // ---- Kernels made by autogen: they copy and call the operator that they were made from ----

  std::string call_of(const NativeFunction& target, const std::vector<std::string>& passed) const {
    return "::" + cpp_namespace(target, options_) + "::ops::" + operator_struct(target.schema) +
           "::call(" + join(passed, ", ") + ")";
  }

  static std::vector<std::string> parameter_names(const NativeFunction& f) {
    std::vector<std::string> list;
    for (const Parameter& parameter : parameters(f)) list.push_back(parameter.name);
    return list;
  }

  // True for the library's own out forms whose shared boxed kernel looks up the functional form.
  bool copies_boxed(const NativeFunction& f, const NativeFunction& base) const {
    return !options_.out_of_tree && base.kind() == SchemaKind::kFunctional &&
           f.kind() == SchemaKind::kOut &&
           std::ranges::all_of(base.schema.returns, [](auto& r) { return r.type.holds_tensor(); });
  }

  void generated(const NativeFunction& f) {
    const NativeFunction& base = *f.autogen_of;
    std::string body;
    if (copies_boxed(f, base)) {
      put(tables_[file_of("CompositeExplicitAutograd", f)].rows["CompositeExplicitAutograd"],
          "    copying_row(", in_quotes(f.full_name()), ", 0),\n");
      return;
    }
    if (base.kind() == SchemaKind::kFunctional) {
      body = from_functional(f, base);
    } else if (f.kind() == SchemaKind::kFunctional) {
      body = functional_from_writing(f, base);
    } else {
      body = out_from_writing(f, base);
    }
    row(f, "CompositeExplicitAutograd", body, f.where.line);
  }

  // In-place and out from functional: compute, check, resize, copy.
  std::string from_functional(const NativeFunction& f, const NativeFunction& base) const {
    std::vector<std::string> passed;
    for (const Argument& argument : base.schema.arguments) {
      const Argument* here = f.schema.find_argument(argument.name);
      passed.push_back(here != nullptr ? identifier(argument.name) : missing_option(f, argument));
    }
    std::string out;
    put(out, "  auto result_ = ", call_of(base, passed), ";\n");
    if (f.kind() == SchemaKind::kInplace) {
      put(out, "  detail::assign_inplace(", in_quotes(op_name(f)), ", self, result_);\n",
          "  return self;\n");
      return out;
    }
    std::vector<std::string> outs;
    for (const Argument& argument : f.schema.arguments) {
      if (argument.is_out()) outs.push_back(argument.name);
    }
    put(out, check_outputs_apart(f));
    size_t next = 0;
    for (size_t i = 0; i < base.schema.returns.size(); ++i) {
      if (!base.schema.returns[i].type.holds_tensor()) continue;
      const std::string value = base.schema.returns.size() == 1
                                    ? "result_"
                                    : "std::get<" + std::to_string(i) + ">(result_)";
      put(out, "  detail::assign_out(", in_quotes(op_name(f)), ", ", in_quotes(outs[next]), ", ",
          identifier(outs[next]), ", ", value, ");\n");
      ++next;
    }
    put(out, return_outs(f, base, outs, "result_"));
    return out;
  }

  static std::string check_outputs_apart(const NativeFunction& f) {
    std::vector<std::string> names;
    std::vector<std::string> outs;
    for (const Argument& argument : f.schema.arguments) {
      if (!argument.is_out() || argument.type.is_list()) continue;
      names.push_back(in_quotes(argument.name));
      outs.push_back(identifier(argument.name));
    }
    if (outs.size() < 2) return {};
    return "  static constexpr const char* names_[] = {" + join(names, ", ") +
           "};\n  detail::check_outputs_apart(" + in_quotes(f.schema.name.name) + ", names_, " +
           join(outs, ", ") + ");\n";
  }

  // A dtype, layout or device that the out form takes from its out argument.
  static std::string missing_option(const NativeFunction& f, const Argument& argument) {
    std::string out;
    for (const Argument& a : f.schema.arguments) {
      if (a.is_out()) out = identifier(a.name);
    }
    if (argument.name == "dtype") return out + ".dtype()";
    if (argument.name == "layout") return out + ".layout()";
    if (argument.name == "device") return out + ".device()";
    return argument.type.is_optional() ? "std::nullopt" : "false";
  }

  // Returns of an out form: its out arguments if they are returned, and results that are not
  // tensors.
  std::string return_outs(const NativeFunction& f, const NativeFunction& base,
                          const std::vector<std::string>& outs, const std::string& value) const {
    std::string text;
    if (f.schema.returns.empty()) return text;
    std::vector<std::string> list;
    size_t next = 0;
    for (const Argument& result : f.schema.returns) {
      if (result.is_write()) {
        list.push_back(identifier(outs[next++]));
        continue;
      }
      for (size_t i = 0, k = 0; i < base.schema.returns.size(); ++i) {
        if (base.schema.returns[i].type.holds_tensor()) continue;
        if (k++ == list.size() - next) {
          list.push_back(base.schema.returns.size() == 1
                             ? value
                             : "std::get<" + std::to_string(i) + ">(" + value + ")");
          break;
        }
      }
    }
    put(text, "  return ", list.size() == 1 ? list[0] : "{" + join(list, ", ") + "}", ";\n");
    return text;
  }

  // Clones the written arguments, calls the operator, and returns the clones.
  std::string functional_from_writing(const NativeFunction& f, const NativeFunction& base) const {
    std::string out;
    std::vector<std::string> passed;
    std::vector<std::string> clones;
    for (const Argument& argument : base.schema.arguments) {
      const std::string name = identifier(argument.name);
      if (!argument.is_write()) {
        passed.push_back(name);
        continue;
      }
      put(out, "  auto ", name, "_copy = detail::cloned(", name, ");\n");
      passed.push_back(name + "_copy");
      clones.push_back(name + "_copy");
    }
    const bool plain_return = std::ranges::any_of(
        base.schema.returns, [](const Argument& result) { return !result.is_write(); });
    put(out, "  ", plain_return ? "auto result_ = " : "", call_of(base, passed), ";\n");
    std::vector<std::string> list;
    size_t next_clone = 0;
    const size_t plain = base.schema.returns.size();
    for (size_t i = 0; i < f.schema.returns.size(); ++i) {
      if (i < plain && !base.schema.returns[i].is_write()) {
        list.push_back(plain == 1 ? "result_" : "std::get<" + std::to_string(i) + ">(result_)");
      } else if (next_clone < clones.size()) {
        list.push_back(clones[next_clone++]);
      }
    }
    // In a tuple they are moved by hand.
    for (std::string& one : list) {
      if (list.size() > 1 && one.ends_with("_copy")) one = "std::move(" + one + ")";
    }
    if (!list.empty()) {
      put(out, "  return ", list.size() == 1 ? list[0] : "{" + join(list, ", ") + "}", ";\n");
    }
    return out;
  }

  // An in-place operator's out form: clone self, call, copy to out.
  std::string out_from_writing(const NativeFunction& f, const NativeFunction& base) const {
    std::string out;
    std::vector<std::string> outs;
    for (const Argument& argument : f.schema.arguments) {
      if (argument.is_out()) outs.push_back(argument.name);
    }
    if (base.kind() == SchemaKind::kInplace) {
      std::vector<std::string> passed;
      for (size_t i = 0; i < base.schema.arguments.size(); ++i) {
        const std::string name = identifier(base.schema.arguments[i].name);
        if (i == 0) put(out, "  auto ", name, "_copy = detail::cloned(", name, ");\n");
        passed.push_back(i == 0 ? name + "_copy" : name);
      }
      put(out, "  ", call_of(base, passed), ";\n", "  detail::assign_out(", in_quotes(op_name(f)),
          ", ", in_quotes(outs[0]), ", ", identifier(outs[0]), ", ", passed[0], ");\n");
      if (return_type(f) != "void") put(out, "  return ", identifier(outs[0]), ";\n");
      return out;
    }
    // A mutable operator writes its arguments in its out form too; only its results go to out.
    std::vector<std::string> passed;
    for (const Argument& argument : base.schema.arguments)
      passed.push_back(identifier(argument.name));
    put(out, "  auto result_ = ", call_of(base, passed), ";\n");
    size_t next = 0;
    for (size_t i = 0; i < base.schema.returns.size(); ++i) {
      if (!base.schema.returns[i].type.holds_tensor() || next >= outs.size()) continue;
      const std::string value = base.schema.returns.size() == 1
                                    ? "result_"
                                    : "std::get<" + std::to_string(i) + ">(result_)";
      put(out, "  detail::assign_out(", in_quotes(op_name(f)), ", ", in_quotes(outs[next]), ", ",
          identifier(outs[next]), ", ", value, ");\n");
      ++next;
    }
    put(out, return_outs(f, base, outs, "result_"));
    return out;
  }

  const Model& model_;
  const EmitOptions& options_;
  std::map<std::string, KernelTable> tables_;
};

}  // namespace

std::map<std::string, KernelTable> make_kernel_tables(const Model& model,
                                                      const EmitOptions& options) {
  Registrations registrations(model, options);
  registrations.run();
  return registrations.take();
}

std::vector<std::string> kernel_table_names() {
  std::vector<std::string> names;
  for (const TableFile& file : kFiles) {
    for (unsigned part = 0; part < file.parts; ++part) names.push_back(part_name(file, part));
  }
  return names;
}

}  // namespace lamella::codegen
