// A tensor with one of its views replaced, and the backwards of views: zeros with the gradient
// written through the same view.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
void check_source(const char* op, const Tensor& src, IntArrayRef expected) {
  LAMELLA_CHECK(src.sizes().equals(expected), op, ": expected 'src' to be of shape ", expected,
                ", got ", src.sizes());
}
// A copy with the same strides, gaps included; one without overlaps for a tensor that has some.
Tensor clone_with_gaps(const Tensor& self) {
  if (self.is_non_overlapping_and_dense()) return self.clone(MemoryFormat::Preserve);
  int64_t extent = 1;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (self.sizes()[d] > 1 && self.strides()[d] == 0) return self.clone(MemoryFormat::Contiguous);
    extent += (self.sizes()[d] - 1) * self.strides()[d];
  }
  if (self.numel() == 0) extent = 0;
  return self.as_strided({extent}, {1}, self.storage_offset())
      .clone()
      .as_strided(self.sizes(), self.strides(), 0);
}
}  // namespace

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  Tensor result = clone_with_gaps(self);
  Tensor part = result.select(dim, index);
  check_source("select_scatter", src, part.sizes());
  part.copy_(src);
  return result;
}
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  Tensor result = clone_with_gaps(self);
  Tensor part = result.slice(dim, start, end, step);
  check_source("slice_scatter", src, part.sizes());
  part.copy_(src);
  return result;
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  Tensor result = clone_with_gaps(self);
  Tensor part = result.diagonal(offset, dim1, dim2);
  check_source("diagonal_scatter", src, part.sizes());
  part.copy_(src);
  return result;
}
Tensor as_strided_scatter(const Tensor& given, const Tensor& src, IntArrayRef size,
                          IntArrayRef stride, std::optional<int64_t> storage_offset) {
  bool overlaps = false;
  for (size_t d = 0; d < given.sizes().size(); ++d) {
    overlaps = overlaps || (given.sizes()[d] > 1 && given.strides()[d] == 0);
  }
  const Tensor self = overlaps ? given.contiguous() : given;
  // Copies all memory up to self's last element, so that any strides are valid in the copy.
  int64_t extent = self.storage_offset() + (self.numel() == 0 ? 0 : 1);
  for (size_t d = 0; d < self.sizes().size() && self.numel() != 0; ++d) {
    extent += (self.sizes()[d] - 1) * self.strides()[d];
  }
  Tensor result = self.as_strided({extent}, {1}, 0)
                      .clone()
                      .as_strided(self.sizes(), self.strides(), self.storage_offset());
  Tensor part = result.as_strided(size, stride, storage_offset);
  check_source("as_strided_scatter", src, part.sizes());
  part.copy_(src);
  return result;
}

Tensor diagonal_backward(const Tensor& grad_output, IntArrayRef input_sizes, int64_t offset,
                         int64_t dim1, int64_t dim2) {
  Tensor result = grad_output.new_zeros(input_sizes);
  Tensor part = result.diagonal(offset, dim1, dim2);
  LAMELLA_CHECK(grad_output.sizes().equals(part.sizes()),
                "diagonal_backward: expected 'grad_output' to be of shape ", part.sizes(), ", got ",
                grad_output.sizes());
  part.copy_(grad_output);
  return result;
}

Tensor unfold_backward(const Tensor& grad_in, IntArrayRef input_sizes, int64_t dim, int64_t size,
                       int64_t step) {
  Tensor result = grad_in.new_zeros(input_sizes);
  Tensor windows = result.unfold(dim, size, step);
  LAMELLA_CHECK(grad_in.sizes().equals(windows.sizes()),
                "unfold_backward: expected 'grad_in' to be of shape ", windows.sizes(), ", got ",
                grad_in.sizes());
  if (windows.numel() == 0) return result;
  if (step >= size) {
    windows.copy_(grad_in);  // windows do not overlap
    return result;
  }
  // The elements i of all windows form one slice, in which no position occurs twice.
  for (int64_t i = 0; i < size; ++i) windows.select(-1, i).add_(grad_in.select(-1, i));
  return result;
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t ndim = self.dim() + 1;
  int64_t a = maybe_wrap_dim(dim1, ndim, "diag_embed"),
          b = maybe_wrap_dim(dim2, ndim, "diag_embed");
  LAMELLA_CHECK(a != b, "diag_embed: expected 'dim1' and 'dim2' to differ, got ", dim1, " and ",
                dim2);
  LAMELLA_CHECK(self.dim() > 0,
                "diag_embed: expected 'self' to have at least 1 dimension, got a tensor with 0");
  Dims sizes(self.sizes());
  CheckedSize length(sizes.back(), "diag_embed");
  int64_t n = (offset < 0 ? length - offset : length + offset).value();
  sizes.pop_back();
  sizes.insert(static_cast<size_t>(a < b ? a : b), n);
  sizes.insert(static_cast<size_t>(a < b ? b : a), n);
  Tensor result = lamella::zeros(sizes, self.options());
  result.diagonal(offset, a, b).copy_(self);
  return result;
}

Tensor trace(const Tensor& self) {
  LAMELLA_CHECK(self.dim() == 2, "trace: expected 'self' to have 2 dimensions, got ", self.sizes());
  return self.diagonal().sum();
}
Tensor trace_backward(const Tensor& grad, IntArrayRef sizes) {
  LAMELLA_CHECK(sizes.size() == 2, "trace_backward: expected two 'sizes', got ", sizes);
  int64_t length = sizes[0] < sizes[1] ? sizes[0] : sizes[1];
  return lamella::diagonal_backward(grad.expand({length}), sizes, 0, 0, 1);
}

}  // namespace lamella::native
