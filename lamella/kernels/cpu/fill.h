// Numbers that are read from tensors to be written into others.
#pragma once
#include "lamella/core/scalar.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// The element of a tensor of one, as a number for tensors of `dtype`. A uint64 beyond int64 becomes
// the int64 of its bits for whole numbers, which wrap, and a double for others.
Scalar number_for(ScalarType dtype, const Tensor& value);

}  // namespace lamella::native
