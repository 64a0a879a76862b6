// Plans: the rule that serves an operator, and the facts about the operator that rules use.
#include <algorithm>

#include "lamella/dispatch/policy.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {
namespace {

PlanKind batching_plans(OperatorChange::kKernels | OperatorChange::kDefined |
                            OperatorChange::kUndefined,
                        true);

bool states_batching(const OperatorEntry& op) {
  return std::ranges::any_of(op.tags,
                             [](const std::string& tag) { return tag.starts_with("batching:"); });
}
// True for operators whose result depends on values and that state no `batching:`.
bool depends_on_values(const OperatorEntry& op) {
  return !states_batching(op) &&
         (op.has_tag("data_dependent_output") || op.has_tag("dynamic_output_shape"));
}

// Batched tensors go straight through a composite kernel that is the operator's batching rule.
Slot composite_slot(const OperatorEntry& op, DispatchKey key) {
  if (key != DispatchKey::Batched) return {};
  const KernelEntry* kernel = op.kernel_for(DispatchKey::CompositeImplicitAutograd);
  if (kernel == nullptr || kernel->fallthrough || depends_on_values(op) ||
      policy_of(op, Policy::kBatching) != "composite") {
    return {};
  }
  return {kernel, kernel, SlotOrigin::kAlias};
}
Slot random_slot(const OperatorEntry& op, DispatchKey key) {
  if (key != DispatchKey::VmapMode || op.has_tag("nondeterministic_seeded")) return {};
  return {fallthrough_kernel(), nullptr, SlotOrigin::kFallthrough};
}
constexpr SlotRule kComposite = {&composite_slot, nullptr, true};
constexpr SlotRule kRandom = {&random_slot, nullptr, true};

// See Note [Which rule serves an operator]. Kernels registered for Batched are found elsewhere.
Rule rule_of(const OperatorEntry& op, const BatchingPlan& plan) {
  std::string_view name = policy_of(op, Policy::kBatching);
  if (depends_on_values(op)) return &refuse_rule;
  if (name.empty()) return &loop_rule;
  Rule rule = find_rule(name);
  LAMELLA_CHECK(rule != nullptr, op.full_name(), ": expected 'batching' to name a rule, got '",
                name, "'");
  // The tag does not suffice where the operator has no argument that names the dimensions.
  if (!states_batching(op) && rule == &reduction_rule && plan.find("dim") < 0) {
    bool composite = op.kernel_for(DispatchKey::CompositeImplicitAutograd) != nullptr;
    if (composite && !op.has_any_backend_kernel()) return &composite_rule;
  }
  return rule;
}

void find_over_dims(BatchingPlan& plan) {
  std::string name = plan.op->name_storage;
  // The overloads of max and min with a dimension also say where; amax and amin do not.
  if (name == "aten::max") name = "aten::amax";
  if (name == "aten::min") name = "aten::amin";
  for (OperatorEntry* other : Registry::get().overloads(name)) {
    const std::vector<Argument>& arguments = Registry::get().schema(other).arguments;
    bool fits = arguments.size() == plan.arguments.size() + 2 && arguments[1].name == "dim" &&
                arguments[2].name == "keepdim" && other->return_count == 1;
    for (size_t i = 1; fits && i < plan.arguments.size(); ++i) {
      fits = arguments[i + 2].name == plan.arguments[i].name;
    }
    if (!fits) continue;
    SchemaType dim = arguments[1].type.without_optional();
    if ((dim.is_list() ? dim.element() : dim).kind() != TypeKind::kInt) continue;
    plan.over_dims = other;
    plan.dims_are_list = dim.is_list();
    return;
  }
}

std::unique_ptr<BatchingPlan> build(OperatorEntry* op) {
  auto plan = std::make_unique<BatchingPlan>();
  const Declared& declared = Registry::get().declared(op);
  plan->op = op;
  plan->name = op->name_storage.substr(op->name_storage.find("::") + 2);
  plan->facts = &declared.facts;
  for (const Argument& argument : declared.schema.arguments) {
    SchemaType type = argument.type.without_optional();
    if (type.is_list()) type = type.element().without_optional();
    plan->arguments.push_back({argument.name, type.kind()});
  }
  for (uint16_t i : plan->facts->tensors) plan->has_list |= plan->facts->arguments[i].is_list;
  plan->random = op->has_tag("nondeterministic_seeded");
  plan->rule = rule_of(*op, *plan);
  if (plan->rule == &reduction_rule && plan->find("dim") < 0) find_over_dims(*plan);
  // These rules check it themselves: composites in the operators that they call, batch norm only
  // in training.
  plan->checks_written =
      plan->writes() && plan->rule != &composite_rule && plan->rule != find_rule("batch_norm");
  return plan;
}

}  // namespace

void add_slot_rules() {
  Registry::get().add_slot_rule(kComposite);
  Registry::get().add_slot_rule(kRandom);
}

int BatchingPlan::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument) return static_cast<int>(i);
  }
  return -1;
}

const BatchingPlan& plan_of(const lamella_operator* op) {
  const OperatorPlan* there = entry_of(op)->plan(batching_plans);
  if (LAMELLA_LIKELY(there != nullptr)) return static_cast<const BatchingPlan&>(*there);
  return Registry::get().plan<BatchingPlan>(op, batching_plans, &build);
}

}  // namespace lamella::vmap
