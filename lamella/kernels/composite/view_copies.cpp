// The *_copy forms of views, for programs without aliases, and the atleast_*d operators.
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
Tensor copied(const Tensor& view) { return view.clone(MemoryFormat::Contiguous); }
std::vector<Tensor> copied(std::vector<Tensor> views) {
  for (Tensor& view : views) view = copied(view);
  return views;
}
}  // namespace

Tensor alias_copy(const Tensor& self) { return copied(self); }
Tensor as_strided_copy(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                       std::optional<int64_t> storage_offset) {
  return copied(self.as_strided(size, stride, storage_offset));
}
Tensor detach_copy(const Tensor& self) { return copied(self.detach()); }
Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(self.diagonal(offset, dim1, dim2));
}
Tensor expand_copy(const Tensor& self, IntArrayRef size, bool implicit) {
  return copied(self.expand(size, implicit));
}
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return copied(self.narrow(dim, start, length));
}
Tensor permute_copy(const Tensor& self, IntArrayRef dims) { return copied(self.permute(dims)); }
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) {
  return copied(self.select(dim, index));
}
Tensor slice_copy(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return copied(self.slice(dim, start, end, step));
}
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return copied(self.split(split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntArrayRef split_sizes,
                                          int64_t dim) {
  return copied(self.split_with_sizes(split_sizes, dim));
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes,
                                            int64_t dim) {
  return copied(self.split_with_sizes(split_sizes, dim));
}
Tensor squeeze_copy(const Tensor& self) { return copied(self.squeeze()); }
Tensor squeeze_copy(const Tensor& self, int64_t dim) { return copied(self.squeeze(dim)); }
Tensor squeeze_copy(const Tensor& self, IntArrayRef dim) { return copied(self.squeeze(dim)); }
Tensor t_copy(const Tensor& self) { return copied(self.t()); }
Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copied(self.transpose(dim0, dim1));
}
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) {
  return copied(self.unbind(dim));
}
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copied(self.unfold(dimension, size, step));
}
Tensor unsqueeze_copy(const Tensor& self, int64_t dim) { return copied(self.unsqueeze(dim)); }
// A copy is always made, so any strides are accepted.
Tensor view_copy(const Tensor& self, IntArrayRef size) {
  return lamella::_unsafe_view(copied(self), size);
}
Tensor view_copy(const Tensor& self, ScalarType dtype) { return copied(self.view(dtype)); }
Tensor view_as_real_copy(const Tensor& self) { return copied(lamella::view_as_real(self)); }
Tensor view_as_complex_copy(const Tensor& self) { return copied(lamella::view_as_complex(self)); }

Tensor _conj_copy(const Tensor& self) { return copied(lamella::_conj(self)); }
Tensor _neg_view_copy(const Tensor& self) { return copied(lamella::_neg_view(self)); }

Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }
Tensor atleast_2d(const Tensor& self) {
  if (self.dim() >= 2) return self;
  return self.dim() == 0 ? self.reshape({1, 1}) : self.unsqueeze(0);
}
Tensor atleast_3d(const Tensor& self) {
  if (self.dim() >= 3) return self;
  return self.dim() == 2 ? self.unsqueeze(-1) : atleast_2d(self).unsqueeze(-1);
}
std::vector<Tensor> atleast_1d(TensorList tensors) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) out.push_back(atleast_1d(tensor));
  return out;
}
std::vector<Tensor> atleast_2d(TensorList tensors) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) out.push_back(atleast_2d(tensor));
  return out;
}
std::vector<Tensor> atleast_3d(TensorList tensors) {
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) out.push_back(atleast_3d(tensor));
  return out;
}

}  // namespace lamella::native
