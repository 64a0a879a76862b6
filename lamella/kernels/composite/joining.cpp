// Operators that join tensors, made of cat: stack, hstack, vstack, dstack and their aliases.
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
std::vector<Tensor> unsqueezed(TensorList tensors, int64_t dim, const char* op) {
  LAMELLA_CHECK(!tensors.empty(), op, ": expected 'tensors' not to be empty");
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    LAMELLA_CHECK(tensors[i].sizes().equals(tensors[0].sizes()), op,
                  ": expected 'tensors' to be of shape ", tensors[0].sizes(), ", got ",
                  tensors[i].sizes(), " at position ", i);
    out.push_back(tensors[i].unsqueeze(dim));
  }
  return out;
}
int64_t stack_dim(TensorList tensors, int64_t dim) {
  LAMELLA_CHECK(!tensors.empty(), "stack: expected 'tensors' not to be empty");
  return maybe_wrap_dim(dim, tensors[0].dim() + 1, "stack");
}
std::vector<Tensor> at_least(TensorList tensors, int64_t ndim, const char* op) {
  LAMELLA_CHECK(!tensors.empty(), op, ": expected 'tensors' not to be empty");
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) {
    Tensor t = tensor;
    if (t.dim() < 1) t = t.reshape({1});
    if (ndim >= 2 && t.dim() < 2) t = t.unsqueeze(0);
    if (ndim >= 3 && t.dim() < 3) t = t.unsqueeze(-1);
    out.push_back(t);
  }
  return out;
}
std::vector<Tensor> columns(TensorList tensors) {
  LAMELLA_CHECK(!tensors.empty(), "column_stack: expected 'tensors' not to be empty");
  std::vector<Tensor> out;
  for (const Tensor& tensor : tensors) {
    out.push_back(tensor.dim() <= 1 ? tensor.reshape({tensor.numel(), 1}) : tensor);
  }
  return out;
}
}  // namespace

Tensor stack(TensorList tensors, int64_t dim) {
  dim = stack_dim(tensors, dim);
  std::vector<Tensor> parts = unsqueezed(tensors, dim, "stack");
  bool in_order =
      dim == tensors[0].dim() || tensors[0].suggest_memory_format() == MemoryFormat::Contiguous;
  if (in_order) return lamella::cat(parts, dim);
  // The channels stay last, in front of the new dimension.
  Dims shape(parts[0].sizes());
  shape[static_cast<size_t>(dim)] = static_cast<int64_t>(parts.size());
  return lamella::cat(tensors, dim).view(shape);
}
Tensor& stack_out(TensorList tensors, int64_t dim, Tensor& out) {
  dim = stack_dim(tensors, dim);
  return lamella::cat_out(out, unsqueezed(tensors, dim, "stack"), dim);
}
Tensor hstack(TensorList tensors) {
  std::vector<Tensor> list = at_least(tensors, 1, "hstack");
  return lamella::cat(list, list[0].dim() == 1 ? 0 : 1);
}
Tensor& hstack_out(TensorList tensors, Tensor& out) {
  std::vector<Tensor> list = at_least(tensors, 1, "hstack");
  return lamella::cat_out(out, list, list[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) { return lamella::cat(at_least(tensors, 2, "vstack"), 0); }
Tensor& vstack_out(TensorList tensors, Tensor& out) {
  return lamella::cat_out(out, at_least(tensors, 2, "vstack"), 0);
}
Tensor dstack(TensorList tensors) { return lamella::cat(at_least(tensors, 3, "dstack"), 2); }
Tensor& dstack_out(TensorList tensors, Tensor& out) {
  return lamella::cat_out(out, at_least(tensors, 3, "dstack"), 2);
}
Tensor column_stack(TensorList tensors) { return lamella::hstack(columns(tensors)); }
Tensor& column_stack_out(TensorList tensors, Tensor& out) {
  return lamella::hstack_out(out, columns(tensors));
}

}  // namespace lamella::native
