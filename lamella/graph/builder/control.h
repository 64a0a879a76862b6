// Functions of the builder for tuples, control flow and tokens. Source: XLA's operation semantics.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

Op Tuple(Within builder, Span<Op> elements);
Op GetTupleElement(Operand tuple_data, int64_t index);

// Applies the computation to the operands.
Op Call(Within builder, const BuiltComputation& computation, Span<Op> operands);
// Calls as Call does; a compiler may know a better way under this name.
Op CompositeCall(Within builder, const BuiltComputation& computation, Span<Op> operands,
                 const std::string& name, std::optional<std::string_view> attributes = std::nullopt,
                 std::optional<int64_t> version = std::nullopt);
// Computations of scalars, applied to each element of the operands. `dimensions` names all of them.
Op Map(Within builder, Span<Op> operands, const BuiltComputation& computation,
       Span<int64_t> dimensions, Span<Op> static_operands = {});
// body(body(...(init))) while condition gives true.
Op While(const BuiltComputation& condition, const BuiltComputation& body, Operand init);
Op Conditional(Operand predicate, Op true_operand, const BuiltComputation& true_computation,
               Op false_operand, const BuiltComputation& false_computation);
// Branch branch_index (S32); the last one where there is no such branch.
Op Conditional(Operand branch_index, Span<const BuiltComputation*> branch_computations,
               Span<Op> branch_operands);

// The operand; what is on either side of it is not moved across.
Op OptimizationBarrier(Operand operand);
Op CreateToken(Within builder);
// A token that comes after all of these.
Op AfterAll(Within builder, Span<Op> tokens);

}  // namespace lamella::hlo
