// Builder functions for tuples, control flow and tokens. Source: XLA's operation semantics.
#pragma once
#include "lamella/graph/builder/builder.h"

namespace lamella::hlo {

Op Tuple(Within builder, Span<Op> elements);
Op GetTupleElement(Operand tuple_data, int64_t index);

// Applies the computation to the operands.
Op Call(Within builder, const BuiltComputation& computation, Span<Op> operands);
// Like Call; `name` lets a compiler substitute its own implementation.
Op CompositeCall(Within builder, const BuiltComputation& computation, Span<Op> operands,
                 const std::string& name, std::optional<std::string_view> attributes = std::nullopt,
                 std::optional<int64_t> version = std::nullopt);
// Applies a computation of scalars to each element of the operands. `dimensions` must list all
// dimensions.
Op Map(Within builder, Span<Op> operands, const BuiltComputation& computation,
       Span<int64_t> dimensions, Span<Op> static_operands = {});
// Applies body to init repeatedly while condition returns true.
Op While(const BuiltComputation& condition, const BuiltComputation& body, Operand init);
Op Conditional(Operand predicate, Op true_operand, const BuiltComputation& true_computation,
               Op false_operand, const BuiltComputation& false_computation);
// Runs branch branch_index (S32), or the last branch if the index is out of range.
Op Conditional(Operand branch_index, Span<const BuiltComputation*> branch_computations,
               Span<Op> branch_operands);

// Returns the operand; compilers move no instruction across it.
Op OptimizationBarrier(Operand operand);
Op CreateToken(Within builder);
// A token that is ordered after all of these.
Op AfterAll(Within builder, Span<Op> tokens);

}  // namespace lamella::hlo
