// The includes of every kernel file: tensors and operators, the kernels' own declarations,
// functions that make tensors, and shape arithmetic.
#pragma once
#include "lamella/api/functions.h"
#include "lamella/core/memory_overlap.h"
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

// Gives an `out` argument the shape of the result; if its shape differs, it becomes contiguous.
inline void resize_output(const Tensor& out, IntArrayRef shape) {
  if (!out.sizes().equals(shape)) resize_tensor(TensorImpl::of(out), shape);
}

}  // namespace lamella::native
