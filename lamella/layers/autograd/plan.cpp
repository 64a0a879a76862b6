// Plans for recording an operator, derived from its schema and its derivative.
#include "lamella/core/error.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/autograd/record.h"

namespace lamella::autograd {
namespace {

PlanKind record_plans(OperatorChange::kDerivative | OperatorChange::kDefined |
                      OperatorChange::kUndefined);

// "aten::mul.Tensor" -> "MulBackward", for operators without a derivative.
std::string node_name_of(const std::string& op) {
  size_t from = op.find("::");
  std::string name;
  bool upper = true;
  for (char c : op.substr(from == std::string::npos ? 0 : from + 2)) {
    if (c == '.') break;
    if (c == '_') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = false;
  }
  return name + "Backward";
}

// Note [Names of nodes]
//   A node is named as PyTorch's is: by the operator and the place of its overload among those that
//   have derivatives. Where PyTorch has two overloads and Lamella one, whose argument may be left
//   out, a derivative is called "SumBackward1, SumBackward0 without dim".
void take_second_name(RecordPlan* plan, const FunctionSchema& schema) {
  const std::string both = plan->node_name;
  const size_t comma = both.find(", ");
  const size_t word = both.find(" without ");
  if (comma == std::string::npos || word == std::string::npos) return;
  plan->node_name = both.substr(0, comma);
  plan->name_without = both.substr(comma + 2, word - comma - 2);
  const std::string wanted = both.substr(word + 9);
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].name == wanted) plan->without = static_cast<int>(i);
  }
}

const void* code_of(const lamella_derivative* d) {
  if (d == nullptr) return nullptr;
  return d->backward != nullptr ? code::address_of(d->backward) : code::address_of(d->forward);
}

std::unique_ptr<RecordPlan> build(const OperatorEntry* op, const Declared& declared,
                                  const lamella_derivative* d) {
  const FunctionSchema& schema = declared.schema;
  const OperatorFacts& facts = declared.facts;
  auto plan = std::make_unique<RecordPlan>(d, code_of(d));
  plan->op = op;
  plan->stays = op->owner == &Registry::kOwn && op->derivative_owner == &Registry::kOwn;
  bool named = d != nullptr && d->name != nullptr && *d->name != '\0';
  plan->node_name = named ? d->name : node_name_of(op->name_storage);
  take_second_name(plan.get(), schema);
  plan->where = op->file + ":" + std::to_string(op->line);
  plan->slot_of.assign(schema.arguments.size(), -1);
  plan->not_differentiable = d != nullptr && (d->flags & LAMELLA_NOT_DIFFERENTIABLE) != 0;
  plan->acts = op->has_tag("side_effect");
  plan->written = facts.written;
  for (const Argument& argument : schema.arguments) {
    plan->argument_names.push_back(argument.name);
    plan->has_out |= argument.is_out();
  }
  for (uint16_t i : facts.tensors) {
    if (d != nullptr) break;
    plan->slot_of[i] = static_cast<int>(plan->slots.size());
    plan->slots.push_back({i, facts.arguments[i].is_list});
  }
  if (d != nullptr) {
    for (uint32_t s = 0; s < d->slot_count; ++s) {
      uint16_t i = d->slots[s];
      LAMELLA_CHECK(i < facts.arguments.size() && facts.arguments[i].is_tensor, op->full_name(),
                    ": its derivative, registered at ", op->derivative_file, ":",
                    op->derivative_line, ", expects argument ", i, " to be a tensor");
      plan->slot_of[i] = static_cast<int>(s);
      plan->slots.push_back({i, facts.arguments[i].is_list});
    }
  }
  LAMELLA_CHECK(plan->slots.size() <= 64, op->full_name(),
                ": expected at most 64 tensor arguments to be differentiated, got ",
                plan->slots.size());
  for (const SlotPlan& slot : plan->slots) plan->has_list_slot |= slot.is_list;
  for (size_t r = 0; r < schema.returns.size(); ++r) {
    const Argument& result = schema.returns[r];
    ReturnPlan one;
    one.is_tensor = facts.returns[r].is_tensor;
    one.is_list = one.is_tensor && facts.returns[r].is_list;
    one.differentiable = one.is_tensor && !plan->not_differentiable &&
                         (d == nullptr || r >= 64 || ((d->differentiable_returns >> r) & 1) != 0);
    one.written = facts.returns[r].written;
    one.is_view = !facts.returns[r].bases.empty();
    plan->returns.push_back(one);
    plan->return_names.push_back(!result.name.empty()         ? result.name
                                 : schema.returns.size() == 1 ? std::string("result")
                                                              : "result" + std::to_string(r));
  }
  for (uint32_t k = 0; d != nullptr && k < d->saved_count; ++k) {
    (d->saved[k].is_return != 0 ? plan->saves_returns : plan->saves_arguments) = true;
  }
  for (uint32_t i = 0; d != nullptr && i < d->keyed_count; ++i) {
    const lamella_keyed_derivative& one = d->keyed[i];
    LAMELLA_INTERNAL_ASSERT(one.derivative->keyed_count == 0, op->full_name(),
                            ": its derivative for ", one.key, " has further ones for keys");
    plan->keyed.emplace_back(dispatch_key_from_name(one.key).value(), nullptr);
    plan->keyed.back().second = build(op, declared, one.derivative).release();
  }
  bool views = false;
  for (const ReturnPlan& one : plan->returns) views |= one.is_view;
  plan->by_parts = d == nullptr && op->owner != &Registry::kOwn && plan->written.empty() && !views;
  plan->plain = !plan->acts && !plan->by_parts && !plan->has_list_slot && plan->written.empty() &&
                plan->returns.size() == 1 && plan->returns[0].is_tensor &&
                !plan->returns[0].is_list && (d == nullptr || d->condition == nullptr);
  return plan;
}

}  // namespace

RecordPlan::~RecordPlan() {
  for (auto& [key, plan] : keyed) {
    if (plan != nullptr) plan->release();
  }
}

// Nodes recorded with the plan will find that its derivative is gone.
void RecordPlan::retire() const {
  derivative.store(nullptr, std::memory_order_release);
  for (auto& [key, plan] : keyed) plan->retire();
}

const RecordPlan* RecordPlan::at_key(uint64_t keys) const {
  const auto called = static_cast<DispatchKey>(detail::slot_of(keys));
  for (const auto& [key, plan] : keyed) {
    if (key == called) return plan;
  }
  return this;
}

const RecordPlan* plan_of(const lamella_operator* op) {
  const OperatorPlan* there = entry_of(op)->plan(record_plans);
  if (LAMELLA_LIKELY(there != nullptr)) return static_cast<const RecordPlan*>(there);
  return &Registry::get().plan<RecordPlan>(op, record_plans, [](OperatorEntry* entry) {
    return build(entry, Registry::get().declared(entry), entry->derivative);
  });
}

}  // namespace lamella::autograd
