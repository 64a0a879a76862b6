// Builds custom calls of operators, with shape, aliasing and effects taken from the operator.
#include "lamella/graph/client/operator_op.h"

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/custom_call/operator_call.h"

namespace lamella::hlo {
namespace {

Op call(Emission& e, const std::string& op, Span<Op> operands, const Shape* declared,
        const std::string& arguments) {
  std::vector<Shape> shapes;
  for (const Op& operand : operands) shapes.push_back(e.shape(operand));
  OperatorCallFacts facts = operator_call_facts(op, shapes, arguments, declared);
  std::vector<OutputOperandAliasing> aliasing;
  for (const OperandAlias& alias : facts.aliases) {
    aliasing.push_back({alias.output, {alias.operand, alias.operand_index}});
  }
  return CustomCall(e.within(), op, operands, facts.shape, facts.arguments, facts.has_side_effect,
                    aliasing);
}

}  // namespace

Op OperatorCall(Within builder, const std::string& op, Span<Op> operands,
                const std::string& arguments) {
  return emit("OperatorCall", builder,
              [&](Emission& e) { return call(e, op, operands, nullptr, arguments); });
}
Op OperatorCallWithShape(Within builder, const std::string& op, Span<Op> operands,
                         const Shape& shape, const std::string& arguments) {
  return emit("OperatorCallWithShape", builder,
              [&](Emission& e) { return call(e, op, operands, &shape, arguments); });
}

}  // namespace lamella::hlo
