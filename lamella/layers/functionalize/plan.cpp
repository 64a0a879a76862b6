// Finds the functional form of an operator: see Note [Functional forms].
#include "lamella/layers/functionalize/plan.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/key_set.h"
#include "lamella/dispatch/registry.h"

namespace lamella::functionalize {
namespace {

// Forms are found among other operators, so the plan of one depends on which others are defined.
PlanKind functionalize_plans(OperatorChange::kKernels | OperatorChange::kDefined |
                                 OperatorChange::kUndefined,
                             true);

bool is_option(const Argument& argument, std::string_view name) {
  return argument.kwarg_only && argument.name == name;
}
int option_of(const Argument& argument) {
  if (is_option(argument, "dtype")) return kDtype;
  if (is_option(argument, "layout")) return kLayout;
  if (is_option(argument, "device")) return kDevice;
  if (is_option(argument, "pin_memory")) return kPinMemory;
  return 0;
}

// True if `candidate` is a functional form of `schema`; fills in the form's arguments.
bool matches(const FunctionSchema& schema, const FunctionSchema& candidate,
             const FunctionalizePlan& plan, bool views, Form* form) {
  if (candidate.is_mutable() || candidate.is_view() != views) return false;
  form->arguments.clear();
  std::vector<int> wanted;
  bool has_out = false;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].is_out()) {
      has_out = true;
    } else {
      wanted.push_back(static_cast<int>(i));
    }
  }
  size_t next = 0;
  for (const Argument& argument : candidate.arguments) {
    if (next < wanted.size()) {
      const Argument& have = schema.arguments[static_cast<size_t>(wanted[next])];
      if (have.name == argument.name && have.type == argument.type) {
        form->arguments.push_back(wanted[next++]);
        continue;
      }
    }
    int option = has_out ? option_of(argument) : 0;
    if (option == 0) return false;
    form->arguments.push_back(option);
  }
  if (next != wanted.size()) return false;
  size_t returns = schema.returns.size() + (views ? 0 : plan.facts->not_returned.size());
  if (candidate.returns.size() != returns) return false;
  for (size_t i = 0; i < returns; ++i) {
    SchemaType type =
        i < schema.returns.size()
            ? schema.returns[i].type
            : schema.arguments[plan.facts->not_returned[i - schema.returns.size()]].type;
    if (candidate.returns[i].type != type) return false;
  }
  return true;
}

const lamella_operator* find_form(const OperatorEntry& entry, const FunctionSchema& schema,
                                  const FunctionalizePlan& plan, bool views, Form* form) {
  std::string ns = entry.name_storage.substr(0, entry.name_storage.find("::") + 2);
  std::string base = schema.name.base_name();
  for (const std::string& name : {base, base + "_functional"}) {
    for (OperatorEntry* other : Registry::get().overloads(ns + name)) {
      if (other != &entry && matches(schema, Registry::get().schema(other), plan, views, form)) {
        return other;
      }
    }
  }
  form->arguments.clear();
  return nullptr;
}

// Under the registry's mutex.
std::unique_ptr<FunctionalizePlan> make_plan(OperatorEntry* entry) {
  const FunctionSchema& schema = Registry::get().schema(entry);
  auto plan = std::make_unique<FunctionalizePlan>();
  plan->name = entry->name_storage.substr(entry->name_storage.find("::") + 2);
  plan->pointwise = entry->has_tag("pointwise");
  bool marked_view = entry->has_tag("inplace_view");
  plan->facts = &Registry::get().facts(entry);
  for (const Argument& argument : schema.arguments) plan->argument_names.push_back(argument.name);
  std::string_view name = entry->name_storage;
  if (name == "aten::resize_") {
    plan->kind = Kind::kResize;
  } else if (name == "aten::set_") {
    plan->kind = Kind::kSet;
  } else if (name == "aten::detach_") {
    plan->kind = Kind::kDetach;
  } else if (name == "aten::resize_as_") {
    plan->kind = Kind::kComposite;  // by its kernel, which calls resize_
  } else if (!plan->facts->written.empty()) {
    plan->kind = marked_view ? Kind::kMetadata : Kind::kWrite;
    plan->in_place = schema.kind() == SchemaKind::kInplace;
    if (marked_view) {
      plan->view.op = find_form(*entry, schema, *plan, true, &plan->view);
    } else {
      plan->family.op = find_form(*entry, schema, *plan, false, &plan->family);
    }
  } else if (schema.is_view()) {
    plan->kind = Kind::kView;
  }
  return plan;
}

// ---- Operators made ----

// The context of its kernels.
struct MadeOperator {
  const lamella_operator* original;
  const OperatorFacts* facts;  // of the original
};

IValue copied(const IValue& value) {
  if (value.isTensor()) {
    Tensor tensor = value.toTensor();
    return tensor.defined() ? IValue(tensor.clone()) : value;
  }
  if (!value.isTensorList()) return value;
  std::vector<Tensor> list = value.toTensorVector();
  for (Tensor& tensor : list) {
    if (tensor.defined()) tensor = tensor.clone();
  }
  return IValue(list);
}

lamella_status run_made(const lamella_kernel* kernel, const lamella_operator* op, uint64_t,
                        const lamella_value* arguments, lamella_value* returns) {
  return lamella::detail::guarded([&] {
    const auto& made = *static_cast<const MadeOperator*>(kernel->context);
    Values values;
    for (uint32_t i = 0; i < op->argument_count; ++i) {
      values.push_back(IValue::from_borrowed(arguments[i]));
    }
    for (uint16_t i : made.facts->written) values[i] = copied(values[i]);
    Values results = call(made.original, values);
    // The original is a view operator, so its results are copied.
    if (made.facts->written.empty()) {
      for (IValue& result : results) result = copied(result);
    }
    for (uint16_t i : made.facts->not_returned) results.push_back(values[i]);
    for (size_t i = 0; i < results.size(); ++i) returns[i] = std::move(results[i]).unsafe_release();
  });
}

// The autograd kernel: if gradients are recorded, runs the operators that the made one consists of,
// so that their gradients are recorded.
lamella_status run_recorded(const lamella_kernel* kernel, const lamella_operator* op, uint64_t keys,
                            const lamella_value* arguments, lamella_value* returns) {
  if ((keys & kGradientBits) != 0) return run_made(kernel, op, keys, arguments, returns);
  constexpr uint64_t below =
      DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::AutogradOther).raw_repr();
  return lamella_redispatch_boxed(op, keys & below, arguments, returns);
}

const lamella_operator* define_made(const lamella_operator* op, const char* suffix,
                                    bool returns_written) {
  OperatorEntry* entry = entry_of(op);
  PlanRef<FunctionalizePlan> held = plan_of(op);
  const FunctionalizePlan& plan = *held;
  std::string ns, name, overload, text;
  {
    std::lock_guard lock(Registry::get().mutex());
    FunctionSchema schema = Registry::get().schema(entry);
    ns = entry->name_storage.substr(0, entry->name_storage.find("::"));
    schema.name.ns = ns;
    schema.name.name = schema.name.base_name();
    // PyTorch's programs know the form of aten::zero_ as aten::zero.
    if (ns != "aten" || !Registry::get().overloads(ns + "::" + schema.name.name).empty()) {
      schema.name.name += suffix;
    }
    if (schema.returns.size() + plan.facts->not_returned.size() == 0) return nullptr;
    if (returns_written) {
      for (uint16_t i : plan.facts->not_returned) schema.returns.push_back(schema.arguments[i]);
    }
    // An overload name that contains "out" marks operators that write.
    std::string& label = schema.name.overload_name;
    for (size_t at; (at = label.find("out")) != std::string::npos;) label.replace(at, 3, "into");
    for (Argument& argument : schema.arguments) {
      if (argument.is_out()) argument.name = "old_" + argument.name;
      argument.aliases.clear();
    }
    for (Argument& result : schema.returns) {
      result.aliases.clear();
      result.name.clear();
      result.kwarg_only = false;
      result.default_value.reset();
    }
    while (lamella_lookup_operator((ns + "::" + schema.name.name).c_str(),
                                   schema.name.overload_name.c_str(), 1) != nullptr) {
      schema.name.name += "_";
    }
    text = schema.str();
    name = schema.name.qualified_name();
    overload = schema.name.overload_name;
  }
  auto* made = new MadeOperator{op, plan.facts};
  std::string full = overload.empty() ? name : name + "." + overload;
  lamella_library* library = nullptr;
  constexpr uint16_t none = static_cast<uint16_t>(DispatchKey::None);
  lamella::detail::check(lamella_library_open(LAMELLA_LIBRARY_FRAGMENT, ns.c_str(), none, __FILE__,
                                              __LINE__, &library));
  // The library stays open: the operator lives until the process ends.
  lamella::detail::check(lamella_library_define(
      library, text.c_str(), nullptr, "generated,batching:composite", __FILE__, __LINE__));
  auto implement = [&](DispatchKey key, lamella_boxed_function function) {
    lamella_kernel_description kernel = {};
    kernel.boxed = function;
    kernel.context = made;
    kernel.file = __FILE__;
    kernel.line = __LINE__;
    lamella::detail::check(
        lamella_library_implement(library, full.c_str(), static_cast<uint16_t>(key), &kernel));
  };
  implement(DispatchKey::CompositeExplicitAutograd, &run_made);
  implement(DispatchKey::Autograd, &run_recorded);
  return lamella_lookup_operator(name.c_str(), overload.c_str(), 1);
}

// Guards the tables below; no operator runs under it.
fork::Held<std::recursive_mutex> tables_lock{fork::Level::kLayers};
// Keyed by the original and its schema, since another library may redefine the name.
using Table = std::map<std::pair<const lamella_operator*, std::string>, const lamella_operator*>;
Table::key_type key_of(const lamella_operator* op) { return {op, lamella_operator_schema(op)}; }
Table& made_forms() {
  static auto* table = new Table;
  return *table;
}
Table& made_copies() {
  static auto* table = new Table;
  return *table;
}

}  // namespace

PlanRef<FunctionalizePlan> plan_of(const lamella_operator* op) {
  return Registry::get().hold_plan<FunctionalizePlan>(op, functionalize_plans, &make_plan);
}

Form made_form(const lamella_operator* op, const FunctionalizePlan& plan) {
  std::lock_guard lock(tables_lock);
  auto [at, fresh] = made_forms().emplace(key_of(op), nullptr);
  if (fresh) at->second = define_made(op, "_functional", true);
  Form form;
  form.op = at->second;
  form.takes_out = true;
  for (size_t i = 0; i < plan.argument_names.size(); ++i) {
    form.arguments.push_back(static_cast<int>(i));
  }
  return form;
}

const lamella_operator* copy_form(const lamella_operator* op) {
  if (plan_of(op)->kind != Kind::kView) return nullptr;
  std::string name = std::string(op->name) + "_copy";
  if (const lamella_operator* known = lamella_lookup_operator(name.c_str(), op->overload, 1)) {
    return known;
  }
  std::lock_guard lock(tables_lock);
  auto [at, fresh] = made_copies().emplace(key_of(op), nullptr);
  if (fresh) at->second = define_made(op, "_copy", false);
  return at->second;
}

const lamella_operator* functional_form(const lamella_operator* op) {
  PlanRef<FunctionalizePlan> held = plan_of(op);
  const FunctionalizePlan& plan = *held;
  if (plan.facts->written.empty()) return nullptr;
  if (plan.family.op != nullptr) return plan.family.op;
  if (plan.view.op != nullptr) return plan.view.op;
  return made_form(op, plan).op;
}

bool is_composite(const lamella_operator* op, uint64_t keys) {
  OperatorEntry* entry = entry_of(op);
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex());
  Slot slot = registry.slot(entry, static_cast<DispatchKey>(lamella::detail::slot_of(keys)));
  return slot.entry != nullptr && slot.entry->key == DispatchKey::CompositeImplicitAutograd;
}

}  // namespace lamella::functionalize
