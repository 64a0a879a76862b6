// Plans: which rule serves an operator, and what rules ask of it.
#include "lamella/dispatch/policy.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {
namespace {

bool has_tag(const OperatorEntry& op, std::string_view name) {
  for (const std::string& tag : op.tags) {
    if (tag == name) return true;
  }
  return false;
}

// See Note [Which rule serves an operator]. Kernels registered for Batched are not asked for here.
Rule rule_of(const OperatorEntry& op, const Plan& plan) {
  std::string_view name = policy_of(op, Policy::kBatching);
  bool stated = false;
  for (const std::string& tag : op.tags) stated |= tag.starts_with("batching:");
  if (!stated && (has_tag(op, "data_dependent_output") || has_tag(op, "dynamic_output_shape"))) {
    return &refuse_rule;
  }
  if (name.empty()) return &loop_rule;
  Rule rule = find_rule(name);
  LAMELLA_CHECK(rule != nullptr, op.full_name(), ": expected 'batching' to name a rule, got '",
                name, "'");
  // A tag says too little where the dimensions are not named.
  if (!stated && rule == &reduction_rule && plan.find("dim") < 0) {
    bool composite = op.kernel_for(DispatchKey::CompositeImplicitAutograd) != nullptr;
    if (composite && !op.has_any_backend_kernel()) return &composite_rule;
  }
  return rule;
}

std::unique_ptr<Plan> build(OperatorEntry* op) {
  auto plan = std::make_unique<Plan>();
  const FunctionSchema& schema = Registry::get().schema(op);
  plan->op = op;
  plan->name = op->name_storage.substr(op->name_storage.find("::") + 2);
  for (const Argument& argument : schema.arguments) {
    SchemaType type = argument.type.without_optional();
    bool is_list = type.is_list();
    if (is_list) type = type.element().without_optional();
    bool is_tensor = argument.type.holds_tensor();
    if (is_tensor) plan->tensors.push_back(static_cast<uint32_t>(plan->arguments.size()));
    plan->arguments.push_back({argument.name, type.kind(), is_tensor, is_list,
                               is_tensor && argument.is_write(), argument.is_out()});
    plan->writes |= plan->arguments.back().written;
    plan->has_list |= is_tensor && is_list;
  }
  for (const Argument& result : schema.returns) {
    Plan::ReturnPlan one{result.type.holds_tensor(), -1};
    const AliasInfo* alias = result.alias();
    for (size_t i = 0; alias != nullptr && alias->is_write && i < schema.arguments.size(); ++i) {
      const AliasInfo* of = schema.arguments[i].alias();
      if (of != nullptr && of->is_write && of->before == alias->before) {
        one.written = static_cast<int>(i);
      }
    }
    plan->returns.push_back(one);
  }
  plan->random = has_tag(*op, "nondeterministic_seeded");
  plan->rule = rule_of(*op, *plan);
  // These look themselves: the composite's operators do, and batch norm knows whether it trains.
  plan->checks_written = plan->writes && plan->rule != &composite_rule &&
                         plan->rule != find_rule("batch_norm");
  return plan;
}

}  // namespace

int Plan::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument) return static_cast<int>(i);
  }
  return -1;
}

const Plan& plan_of(const lamella_operator* op) {
  const OperatorPlan* there = static_cast<const OperatorEntry*>(op)->plan(PlanKind::kBatching);
  if (LAMELLA_LIKELY(there != nullptr)) return static_cast<const Plan&>(*there);
  return Registry::get().plan<Plan>(op, PlanKind::kBatching, &build);
}

}  // namespace lamella::vmap
