// Builder functions that call registered operators.
#pragma once
#include "lamella/graph/builder/calls.h"

namespace lamella::hlo {

// A custom call of a registered operator: OperatorCall(&b, "aten::add.Tensor", {x, y}, "alpha=2").
// Its Meta kernel gives the shape, and its schema gives aliasing and side effects. For the format
// of `arguments` and the results see Note [Arguments of an operator] and Note [Operators in graphs]
// in custom_call/.
Op OperatorCall(Within builder, const std::string& op, Span<Op> operands,
                const std::string& arguments = "");
// OperatorCall with a stated shape, for operators whose shapes depend on values or that have no
// Meta kernel.
Op OperatorCallWithShape(Within builder, const std::string& op, Span<Op> operands,
                         const Shape& shape, const std::string& arguments = "");

}  // namespace lamella::hlo
