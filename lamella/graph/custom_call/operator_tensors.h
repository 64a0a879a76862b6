// Values as tensors and tensors as values, over the same memory where that can be.
#pragma once
#include "lamella/core/tensor_base.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// A row-major tensor on the CPU over the value's memory, which it keeps. The value must be an array
// of an element type that tensors have; TypeError otherwise. Who writes the tensor must have made
// the value writable.
TensorBase tensor_of(Value value);

// The tensor's elements as a value of `shape`, whose sizes and element type must be the tensor's.
// Over the tensor's memory if it lies on the CPU row by row, else over a copy. Where nobody else
// can reach that memory the value may be written. Throws an Error for tensors that are not on the
// CPU.
Value value_of(TensorBase tensor, const Shape* shape);

// Whether a tensor has the array's sizes and element type.
bool has_shape(const TensorBase& tensor, const Shape& shape);
// "f32[2,3]"; of an element type that modules have not, the tensor's own: "complex32[2,3]".
std::string shape_text(const TensorBase& tensor);

}  // namespace lamella::hlo
