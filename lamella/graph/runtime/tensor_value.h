// Conversions between tensors and HLO values, without copies where possible.
#pragma once
#include <vector>

#include "lamella/core/tensor_base.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// The scalar type of the tensors that represent arrays of the element type: the equal type if there
// is one; otherwise Char or Byte for integers narrower than a byte, with one element per byte, and
// Byte for the bits of floats of at most 8 bits.
ScalarType tensor_type_of(ElementType type);

// A value with the tensor's elements. It views the tensor's memory and keeps it alive, or is a copy
// if the tensor is not on the CPU, not contiguous, or not aligned to 16 bytes, or if elements are
// narrower than a byte. Throws an Error unless sizes and scalar type match the shape.
Value value_of_tensor(const Shape* shape, const TensorBase& tensor);

// One tensor for each array of the value; tuples are flattened in preorder, tokens are omitted. The
// tensors share no memory with each other, or with arguments or constants of the module, and may
// outlive it.
std::vector<TensorBase> tensors_of_value(Value value);

// The shapes of all arrays in a shape, in the same order.
std::vector<const Shape*> array_leaves(const Shape& shape);
// Assembles a value of the shape from one value for each of its arrays: moves them out of `leaves`,
// starting at `*next`, which it advances.
Value value_of_leaves(const Shape* shape, std::span<Value> leaves, size_t* next);

}  // namespace lamella::hlo
