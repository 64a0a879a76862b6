// Tensors as values of HLO, and the other way, without copies where that can be.
#pragma once
#include <vector>

#include "lamella/core/tensor_base.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// The scalar type of the tensors that stand for arrays of the element type: the one with the same
// elements; where tensors have none, Char or Byte for integers below a byte, one byte each, and
// Byte for the bits of a float of 8 bits or less.
ScalarType tensor_type_of(ElementType type);

// A value of an array's shape with the tensor's elements: over its memory, which it keeps alive,
// or over a copy where the elements lie elsewhere than on the CPU, not row-major, or not aligned to
// 16 bytes. Sizes and scalar type must be those of the shape; throws an Error otherwise.
Value value_of_tensor(const Shape* shape, const TensorBase& tensor);

// One tensor for each array of the value, tuples flattened in preorder, tokens left out. They share
// no memory with each other, with arguments or with constants of the module, and may outlive it.
std::vector<TensorBase> tensors_of_value(Value value);

// The array shapes that a shape has in it, in the same order.
std::vector<const Shape*> array_leaves(const Shape& shape);
// The value of a shape from one value for each of its arrays, which it takes from `next` on.
Value value_of_leaves(const Shape* shape, std::span<Value> leaves, size_t* next);

}  // namespace lamella::hlo
