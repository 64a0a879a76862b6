// Tuples, calls, loops, branches, and what only orders other instructions.
#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/collective.h"
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {
namespace {

Value evaluate_while(Step& step) {
  const Computation& condition = *step.instruction.computation(AttributeKey::Condition);
  const Computation& body = *step.instruction.computation(AttributeKey::Body);
  Value state = std::move(step.operands[0]);
  for (;;) {
    check_interrupt();  // bodies without a step as well
    Value asked[] = {state};
    if (step.run.call(condition, asked).values<uint8_t>()[0] == 0) return state;
    Value taken[] = {std::move(state)};
    state = step.run.call(body, taken);
  }
}

Value evaluate_conditional(Step& step) {
  const Instruction& i = step.instruction;
  if (const Attribute* found = i.find(AttributeKey::BranchComputations)) {
    // A number that names no branch takes the last one.
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

}  // namespace

Value evaluate_control(Step& step) {
  const Instruction& i = step.instruction;
  switch (i.opcode) {
    case Opcode::Tuple:
      return Value::tuple(i.shape, step.operands);
    case Opcode::GetTupleElement:
      return step.operands[0].element(static_cast<size_t>(i.integer(AttributeKey::Index)));
    case Opcode::Call:
    case Opcode::Fusion:
      return step.run.call(*i.computation(i.has(AttributeKey::ToApply) ? AttributeKey::ToApply
                                                                       : AttributeKey::Calls),
                           step.operands);
    case Opcode::While:
      return evaluate_while(step);
    case Opcode::Conditional:
      return evaluate_conditional(step);
    case Opcode::AfterAll:
      return Value::token(i.shape);
    case Opcode::AddDependency:
    case Opcode::Domain:
    case Opcode::OptimizationBarrier:
      return std::move(step.operands[0]);
    default:
      return evaluate_asynchronous(step);
  }
}

}  // namespace lamella::hlo
