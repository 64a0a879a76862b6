// What every kernel file needs: tensors and operators, the kernels' own declarations, makers of
// tensors and shape arithmetic.
#pragma once
#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/dims.h"
#include "lamella/native_functions.h"
#include "lamella/structured_kernels.h"

namespace lamella::native {

inline Tensor new_tensor(IntArrayRef sizes, ScalarType dtype, Device device) {
  return Tensor(make_empty(sizes, dtype, device));
}
inline Tensor new_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, Device device) {
  return Tensor(make_empty_strided(sizes, strides, dtype, device));
}
// A view with the same element type.
inline Tensor view_of(const Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                      int64_t storage_offset) {
  return Tensor(make_view(self, sizes, strides, storage_offset));
}

// Gives an `out` argument the shape of the result, contiguous if it has another one.
inline void resize_output(const Tensor& out, IntArrayRef shape) {
  if (!out.sizes().equals(shape)) resize_tensor(TensorImpl::of(out), shape);
}

// Throws unless every element of a tensor that is written has memory of its own.
inline void check_no_overlap(const char* op, const char* name, const TensorBase& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return;
  IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  for (size_t d = 0; d < sizes.size(); ++d) {
    LAMELLA_CHECK(sizes[d] <= 1 || strides[d] != 0, op, ": expected '", name,
                  "' to have memory of its own for each element it writes, got one expanded to ",
                  sizes, "; clone it first");
  }
}

}  // namespace lamella::native
