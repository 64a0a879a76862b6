// Calls of operators as a function of the builder.
#pragma once
#include "lamella/graph/builder/calls.h"

namespace lamella::hlo {

// A custom call of a registered operator: OperatorCall(&b, "aten::add.Tensor", {x, y}, "alpha=2").
// The shape is what its Meta kernel gives, aliasing and side effects are what its schema says. How
// `arguments` are written, and which results there are, is told by Note [Arguments of an operator]
// and Note [Operators in graphs] in custom_call/.
Op OperatorCall(Within builder, const std::string& op, Span<Op> operands,
                const std::string& arguments = "");
// For an operator that cannot tell its shapes, because they depend on values or it has no Meta
// kernel.
Op OperatorCallWithShape(Within builder, const std::string& op, Span<Op> operands,
                         const Shape& shape, const std::string& arguments = "");

}  // namespace lamella::hlo
