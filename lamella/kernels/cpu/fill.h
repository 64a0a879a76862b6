// What operators share that write one value to many elements.
#pragma once
#include "lamella/core/scalar.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

// The element of a tensor of one, as a number for tensors of `dtype`. A uint64 beyond int64 becomes
// the int64 of its bits for whole numbers, which wrap, and a double for others.
Scalar number_for(ScalarType dtype, const Tensor& value);

// Warns if elements of `self` share memory because it is expanded, so that writing one of them
// writes all.
void warn_of_shared_elements(const char* op, const Tensor& self);

}  // namespace lamella::native
