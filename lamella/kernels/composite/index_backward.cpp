// Backwards of operators that select elements: zeros, with the gradient where the elements came
// from.
#include "lamella/kernels/native.h"

namespace lamella::native {

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  Tensor result = self.clone(MemoryFormat::Preserve);
  result.put_(index, source, accumulate);
  return result;
}

Tensor index_select_backward(const Tensor& grad, IntArrayRef self_sizes, int64_t dim,
                             const Tensor& index) {
  return grad.new_zeros(self_sizes).index_add_(dim, index, grad);
}

Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask) {
  // The mask may be larger than the input, whose gradient then is the sum over what it was
  // broadcast to.
  Dims shape = broadcast_shapes(input.sizes(), mask.sizes(), "masked_select_backward", "mask");
  Tensor result = grad.new_zeros(shape);
  result.masked_scatter_(mask, grad);
  return result;
}

Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntArrayRef sizes) {
  Tensor used = grad_output.masked_select(mask.expand(grad_output.sizes()));
  int64_t unused = checked_numel(sizes, "masked_scatter_backward") - used.numel();
  LAMELLA_CHECK(unused >= 0, "masked_scatter_backward: expected 'sizes' to hold at least ",
                used.numel(), " elements, got ", sizes);
  if (unused > 0) used = lamella::cat({used, used.new_zeros({unused})}, 0);
  return used.reshape(sizes);
}

Tensor value_selecting_reduction_backward(const Tensor& grad, int64_t dim, const Tensor& indices,
                                          IntArrayRef sizes, bool keepdim) {
  if (keepdim || sizes.empty()) return grad.new_zeros(sizes).scatter_(dim, indices, grad);
  return grad.new_zeros(sizes).scatter_(dim, indices.unsqueeze(dim), grad.unsqueeze(dim));
}

}  // namespace lamella::native
