// The shared kernel of all out forms that call the functional form and copy its results.
#include <algorithm>

#include "lamella/api/functions.h"
#include "lamella/api/generated_kernels.h"
#include "lamella/api/operator_tables.h"
#include "lamella/core/ivalue.h"
#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

PlanKind copying_plans(OperatorChange::kDefined | OperatorChange::kUndefined, true);

// Where an argument of the functional form comes from: the out form's argument of its name, by
// index, or the first tensor that is written.
enum Option : int { kDtype = -1, kLayout = -2, kDevice = -3, kPinMemory = -4 };

struct CopyingPlan : OperatorPlan {
  const lamella_operator* functional = nullptr;
  std::string name;  // without its namespace, for errors
  std::vector<int> sources;
  std::vector<size_t> outs;  // arguments that are written, by index, in the order of the returns
  std::vector<std::string> out_names;
  bool keeps_shape = false;  // the result takes the shape of an out with as many elements
};

bool find_source(const FunctionSchema& schema, const Argument& wanted, std::vector<int>& sources) {
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument& have = schema.arguments[i];
    if (have.is_out() || have.name != wanted.name) continue;
    sources.push_back(static_cast<int>(i));
    return have.type == wanted.type;
  }
  int option = wanted.name == "dtype"        ? kDtype
               : wanted.name == "layout"     ? kLayout
               : wanted.name == "device"     ? kDevice
               : wanted.name == "pin_memory" ? kPinMemory
                                             : 0;
  sources.push_back(option);
  return option != 0;
}

// True if `candidate` has the out form's arguments except those that are written.
bool computes(const FunctionSchema& schema, const FunctionSchema& candidate, CopyingPlan* plan) {
  if (candidate.is_mutable() || candidate.is_view()) return false;
  plan->sources.clear();
  for (const Argument& argument : candidate.arguments) {
    if (!find_source(schema, argument, plan->sources)) return false;
  }
  auto passed = std::ranges::count_if(plan->sources, [](int source) { return source >= 0; });
  return static_cast<size_t>(passed) + plan->outs.size() == schema.arguments.size() &&
         candidate.returns.size() == plan->outs.size();
}

// Must be called with the registry's mutex held.
std::unique_ptr<CopyingPlan> make_plan(OperatorEntry* entry) {
  Registry& registry = Registry::get();
  const FunctionSchema& schema = registry.schema(entry);
  auto plan = std::make_unique<CopyingPlan>();
  plan->name = schema.name.name;
  plan->keeps_shape = plan->name == "linspace" || plan->name == "logspace";
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (!schema.arguments[i].is_out()) continue;
    plan->outs.push_back(i);
    plan->out_names.push_back(schema.arguments[i].name);
  }
  for (OperatorEntry* other : registry.overloads(entry->name_storage)) {
    if (other == entry || !computes(schema, registry.schema(other), plan.get())) continue;
    plan->functional = other;
    return plan;
  }
  throw InternalError(entry->name_storage + ": the functional form of '" + schema.str() +
                      "' is not there");
}

IValue option_value(int option, const Tensor& out) {
  switch (option) {
    case kDtype:
      return IValue(out.scalar_type());
    case kLayout:
      return IValue(out.layout());
    case kDevice:
      return IValue(out.device());
    default:
      return {};
  }
}

void check_apart(const CopyingPlan& plan, const std::vector<IValue>& outs) {
  for (size_t i = 1; i < outs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!outs[i].isTensor() || !outs[j].isTensor()) continue;
      check_no_overlap(plan.name.c_str(), plan.out_names[i].c_str(), outs[i].toTensor(),
                       plan.out_names[j].c_str(), outs[j].toTensor());
    }
  }
}

}  // namespace

lamella_status compute_and_copy(const lamella_kernel*, const lamella_operator* op, uint64_t,
                                const lamella_value* arguments, lamella_value* returns) {
  return detail::guarded([&] {
    const auto& plan = Registry::get().plan<CopyingPlan>(op, copying_plans, &make_plan);
    std::vector<IValue> outs;
    for (size_t i : plan.outs) outs.push_back(IValue::from_borrowed(arguments[i]));
    check_apart(plan, outs);
    std::vector<IValue> options;
    options.reserve(plan.sources.size());
    std::vector<lamella_value> passed, results(plan.functional->return_count);
    for (int source : plan.sources) {
      if (source < 0) options.push_back(option_value(source, outs.front().toTensor()));
      passed.push_back(source < 0 ? options.back().value() : arguments[source]);
    }
    detail::check(lamella_call_boxed(plan.functional, passed.data(),
                                     static_cast<uint32_t>(passed.size()), results.data(),
                                     static_cast<uint32_t>(results.size())));
    std::vector<IValue> computed;
    for (const lamella_value& result : results) computed.push_back(IValue::adopt(result));
    for (size_t i = 0; i < outs.size(); ++i) {
      const char* name = plan.out_names[i].c_str();
      if (outs[i].isTensor()) {
        const Tensor& out = outs[i].toTensor();
        Tensor result = computed[i].toTensor();
        if (plan.keeps_shape && out.numel() == result.numel()) result = result.view(out.sizes());
        detail::assign_out(plan.name.c_str(), name, out, result);
      } else {
        detail::assign_out(plan.name.c_str(), name, outs[i].toTensorVector(),
                           computed[i].toTensorVector());
      }
    }
    for (uint32_t i = 0; i < op->return_count; ++i)
      returns[i] = std::move(outs[i]).unsafe_release();
  });
}

}  // namespace lamella
