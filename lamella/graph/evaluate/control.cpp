// Tuples, calls, loops, branches, and instructions that only order others.
#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

Value evaluate_while(Step& step) {
  const Computation& condition = *step.instruction.computation(AttributeKey::Condition);
  const Computation& body = *step.instruction.computation(AttributeKey::Body);
  Value state = std::move(step.operands[0]);
  for (;;) {
    check_interrupt();  // here, because a body may have no steps
    Value asked[] = {state};
    if (step.run.call(condition, asked).values<uint8_t>()[0] == 0) return state;
    Value taken[] = {std::move(state)};
    state = step.run.call(body, taken);
  }
}

Value evaluate_conditional(Step& step) {
  const Instruction& i = step.instruction;
  if (const Attribute* found = i.find(AttributeKey::BranchComputations)) {
    // An index out of range selects the last branch.
    auto branches = found->computations();
    auto count = static_cast<int32_t>(branches.size());
    int32_t which = step.operands[0].values<int32_t>()[0];
    if (which < 0 || which >= count) which = count - 1;
    return step.run.call(*branches[static_cast<size_t>(which)],
                         step.operands.subspan(static_cast<size_t>(which) + 1, 1));
  }
  bool yes = step.operands[0].values<uint8_t>()[0] != 0;
  return step.run.call(
      *i.computation(yes ? AttributeKey::TrueComputation : AttributeKey::FalseComputation),
      step.operands.subspan(yes ? 1 : 2, 1));
}

Value evaluate_call(Step& step) {
  const Instruction& i = step.instruction;
  AttributeKey key = i.has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls;
  return step.run.call(*i.computation(key), step.operands);
}

Value evaluate_tuple(Step& step) { return Value::tuple(step.instruction.shape, step.operands); }

Value evaluate_get_tuple_element(Step& step) {
  auto index = static_cast<size_t>(step.instruction.integer(AttributeKey::Index));
  return step.operands[0].element(index);
}

Value evaluate_after_all(Step& step) { return Value::token(step.instruction.shape); }
Value evaluate_operand(Step& step) { return std::move(step.operands[0]); }

// Parameters, constants and custom calls have no rule, because executors handle them directly.
Value evaluate_prepared(Step& step) {
  LAMELLA_INTERNAL_ASSERT(false, "hlo: expected '", step.instruction.name, "' to be prepared");
}

}  // namespace lamella::hlo
