// Derivatives of views and copies.
#pragma once
#include <vector>

#include "lamella/api/tensor.h"

namespace lamella {

// A complex tensor conjugated, a real one as it is.
inline Tensor conj_of(const Tensor& tensor) {
  return tensor.is_complex() ? tensor.conj_physical() : tensor;
}
// grad * conj_of(factor), without a copy of the handle.
inline Tensor mul_conj(const Tensor& grad, const Tensor& factor) {
  return factor.is_complex() ? grad.mul(factor.conj_physical()) : grad.mul(factor);
}
// The conjugate transpose of matrices, as in the gradients of a matrix product.
Tensor adjoint_of(const Tensor& tensor);
// tensor * number, without the product where the number is 1.
Tensor scaled(const Tensor& tensor, const Scalar& number);

// The sum of `grad` over what a tensor of `sizes` was broadcast to.
Tensor sum_to(const Tensor& grad, IntArrayRef sizes);

Tensor permute_backward(const Tensor& grad, IntArrayRef dims);
// The gradient of self in as_strided(size, stride, offset) on a tensor of `self_sizes`,
// `self_strides` and `self_offset`. Both may overlap themselves: each memory cell gathers what was
// read from it, and shares it among the elements of self that lie in it.
Tensor as_strided_backward(const Tensor& grad, IntArrayRef self_sizes, IntArrayRef self_strides,
                           int64_t self_offset, IntArrayRef size, IntArrayRef stride,
                           std::optional<int64_t> offset);
// The tangent, whatever layout that of self has.
Tensor as_strided_forward(const Tensor& self_t, const Tensor& self_p, IntArrayRef size,
                          IntArrayRef stride, std::optional<int64_t> offset);
// The gradient of self in as_strided_scatter(self, src, size, stride, offset), whose result is laid
// out as self is.
Tensor as_strided_scatter_self_backward(const Tensor& grad, IntArrayRef self_sizes,
                                        IntArrayRef self_strides, int64_t self_offset,
                                        IntArrayRef size, IntArrayRef stride,
                                        std::optional<int64_t> offset);
Tensor as_strided_scatter_source_backward(const Tensor& grad, IntArrayRef self_sizes,
                                          IntArrayRef self_strides, int64_t self_offset,
                                          IntArrayRef size, IntArrayRef stride,
                                          std::optional<int64_t> offset);

// as_strided_scatter of the tangents, whatever layout that of self has.
Tensor as_strided_scatter_forward(const Tensor& self_t, const Tensor& self_p, const Tensor& src_t,
                                  IntArrayRef size, IntArrayRef stride,
                                  std::optional<int64_t> offset);

// Gradients of the parts of a tensor of `sizes`; undefined ones count as zeros. `options` are those
// of the tensor.
Tensor split_backward(TensorList grads, int64_t split_size, int64_t dim, IntArrayRef sizes,
                      const TensorOptions& options);
Tensor split_with_sizes_backward(TensorList grads, IntArrayRef split_sizes, int64_t dim,
                                 IntArrayRef sizes, const TensorOptions& options);
Tensor unbind_backward(TensorList grads, int64_t dim);

// Zeros of a shape, like `grad` in all else, that take no memory.
Tensor zeros_for(const Tensor& grad, IntArrayRef sizes);
// A tangent that was copied over a tensor like self.
Tensor copied_tangent(const Tensor& tangent, const Tensor& self);
// The gradient in the dtype and on the device that the copied tensor had.
Tensor to_copy_backward(const Tensor& grad, const TensorOptions& options);

Tensor repeat_backward(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes);
Tensor roll_backward(const Tensor& grad, IntArrayRef shifts, IntArrayRef dims);
Tensor constant_pad_backward(const Tensor& grad, IntArrayRef pad);

}  // namespace lamella
