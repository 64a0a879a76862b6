// Which dimensions a reduction folds, and the shape that is left.
#pragma once
#include "lamella/kernels/cpu/reduce.h"

namespace lamella::native {

// No dimensions, or none given: all of them. Throws IndexError for one that is not there, and Error
// for one that is named twice.
DimMask reduced_dims(const char* op, OptionalIntArrayRef dim, int64_t ndim,
                     bool empty_is_all = true);
struct ReducedShape {
  int64_t sizes[64];
  size_t ndim = 0;
  IntArrayRef ref() const { return {sizes, ndim}; }
};
ReducedShape reduced_shape(const TensorBase& self, DimMask mask, bool keepdim);
// Throws if a reduced dimension is empty, for operators without a result for nothing.
void check_not_empty(const char* op, const TensorBase& self, DimMask mask);

}  // namespace lamella::native
