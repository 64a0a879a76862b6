// Reads from an operator's schema, once, what recording and reading graphs needs.
#include "lamella/layers/trace/operators.h"

#include <memory>

#include "lamella/dispatch/registry.h"

namespace lamella::tracing {
namespace {

// Graphs may still name an operator that was undefined, so only a new definition drops the plan.
PlanKind tracing_plans(static_cast<unsigned>(OperatorChange::kDefined));

// Operators that fill what they write, by name.
bool fills(const OperatorName& name) {
  return name.name == "fill_" || name.name == "zero_" || name.name == "copy_" ||
         name.name == "uniform_" || name.name == "normal_";
}

// Under the registry's mutex.
std::unique_ptr<TracingPlan> read(OperatorEntry* op) {
  const OperatorEntry& entry = *op;
  const FunctionSchema& schema = Registry::get().schema(op);
  auto made = std::make_unique<TracingPlan>();
  TracingPlan& plan = *made;
  plan.name = entry.full_name();
  plan.facts = &Registry::get().facts(op);
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    plan.arguments.push_back(argument.name);
    plan.keyword_only.push_back(argument.kwarg_only);
    plan.types.push_back(argument.type);
    if ((argument.name == "running_mean" || argument.name == "running_var") && i < 64) {
      plan.statistics |= uint64_t{1} << i;
    }
    if (argument.name == "training" || argument.name == "use_input_stats") {
      plan.trains = static_cast<int32_t>(i);
    }
  }
  plan.overwrites = fills(schema.name) || schema.kind() == SchemaKind::kOut;
  bool gives_numbers = false;
  for (const Argument& result : schema.returns) gives_numbers |= !result.type.holds_tensor();
  for (const std::string& tag : entry.tags) {
    plan.random |= tag == "nondeterministic_seeded";
    plan.acts |= tag == "side_effect";
    plan.reads_elements |= tag == "data_dependent_output" && gives_numbers;
  }
  return made;
}

}  // namespace

PlanRef<TracingPlan> plan_of(const lamella_operator* op) {
  return Registry::get().hold_plan<TracingPlan>(op, tracing_plans, &read);
}

}  // namespace lamella::tracing
