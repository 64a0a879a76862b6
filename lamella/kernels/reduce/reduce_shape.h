// Which dimensions a reduction folds, and the shape that is left.
#pragma once
#include "lamella/kernels/cpu/reduce.h"

namespace lamella::native {

// An empty or absent list means all dimensions. Throws IndexError for a dimension out of range, and
// Error for one that is listed twice.
DimMask reduced_dims(const char* op, OptionalIntArrayRef dim, int64_t ndim,
                     bool empty_is_all = true);
struct ReducedShape {
  int64_t sizes[64];
  size_t ndim = 0;
  IntArrayRef ref() const { return {sizes, ndim}; }
};
ReducedShape reduced_shape(const TensorBase& self, DimMask mask, bool keepdim);
// Throws if a reduced dimension has size 0, for operators that have no identity element.
void check_not_empty(const char* op, const TensorBase& self, DimMask mask);

}  // namespace lamella::native
