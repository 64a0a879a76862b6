// Broadcasting: infer_size, expand_inplace, expand_outplace, expand_size, sum_to, is_expandable_to.
#pragma once
#include <ATen/Functions.h>
#include <c10/util/DimVector.h>
#include <c10/util/MaybeOwned.h>

#include <tuple>
#include <vector>

namespace at {

// The shape to which two shapes broadcast. Throws if they do not.
template <class Sizes = std::vector<int64_t>>
Sizes infer_size(IntArrayRef a, IntArrayRef b) {
  size_t dims = std::max(a.size(), b.size());
  Sizes sizes(dims, 1);
  for (size_t d = 1; d <= dims; ++d) {  // counted from the last dimension
    int64_t of_a = d <= a.size() ? a[a.size() - d] : 1;
    int64_t of_b = d <= b.size() ? b[b.size() - d] : 1;
    LAMELLA_CHECK(of_a == of_b || of_a == 1 || of_b == 1,
                  "infer_size: expected shapes that broadcast, got ", a, " and ", b);
    sizes[dims - d] = of_a == 1 ? of_b : of_a;
  }
  return sizes;
}
LAMELLA_LAZY DimVector infer_size_dimvector(IntArrayRef a, IntArrayRef b) {
  return infer_size<DimVector>(a, b);
}
LAMELLA_LAZY std::vector<int64_t> infer_size_symint(IntArrayRef a, IntArrayRef b) {
  return infer_size(a, b);
}

// True if a tensor of shape `from` can be expanded to `to`.
inline bool is_expandable_to(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  for (size_t d = 1; d <= from.size(); ++d) {
    int64_t size = from[from.size() - d];
    if (size != 1 && size != to[to.size() - d]) return false;
  }
  return true;
}
inline bool are_expandable(IntArrayRef a, IntArrayRef b) {
  for (size_t d = 1; d <= std::min(a.size(), b.size()); ++d) {
    int64_t of_a = a[a.size() - d], of_b = b[b.size() - d];
    if (of_a != of_b && of_a != 1 && of_b != 1) return false;
  }
  return true;
}

// The tensor itself if it has these sizes, else an expanded view. The operator's name is unused,
// because Lamella's expand() writes its own error message.
LAMELLA_LAZY c10::MaybeOwned<Tensor> expand_size(const Tensor& tensor, IntArrayRef sizes,
                                                 const char* = "expand_size") {
  return tensor.sizes() == sizes ? c10::MaybeOwned<Tensor>::borrowed(tensor)
                                 : c10::MaybeOwned<Tensor>::owned(tensor.expand(sizes, true));
}
LAMELLA_LAZY c10::MaybeOwned<Tensor> expand_inplace(const Tensor& self, const Tensor& other,
                                                    const char* = "expand_inplace") {
  return expand_size(other, self.sizes());
}
LAMELLA_LAZY std::tuple<c10::MaybeOwned<Tensor>, c10::MaybeOwned<Tensor>> expand_inplace(
    const Tensor& self, const Tensor& a, const Tensor& b, const char* = "expand_inplace") {
  return {expand_size(a, self.sizes()), expand_size(b, self.sizes())};
}
LAMELLA_LAZY std::tuple<c10::MaybeOwned<Tensor>, c10::MaybeOwned<Tensor>> expand_outplace(
    const Tensor& a, const Tensor& b, const char* = "expand_outplace") {
  DimVector sizes = infer_size_dimvector(a.sizes(), b.sizes());
  return {expand_size(a, sizes), expand_size(b, sizes)};
}
LAMELLA_LAZY std::tuple<c10::MaybeOwned<Tensor>, c10::MaybeOwned<Tensor>, c10::MaybeOwned<Tensor>>
expand_outplace(const Tensor& a, const Tensor& b, const Tensor& c,
                const char* = "expand_outplace") {
  DimVector sizes = infer_size_dimvector(a.sizes(), b.sizes());
  sizes = infer_size_dimvector(sizes, c.sizes());
  return {expand_size(a, sizes), expand_size(b, sizes), expand_size(c, sizes)};
}
// Undefined tensors stay undefined.
LAMELLA_LAZY std::vector<Tensor> expand_outplace(TensorList tensors) {
  DimVector sizes;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) sizes = infer_size_dimvector(sizes, tensor.sizes());
  }
  std::vector<Tensor> results;
  for (const Tensor& tensor : tensors) {
    results.push_back(tensor.defined() ? tensor.expand(sizes, true) : Tensor());
  }
  return results;
}

// Sums over the dimensions that broadcasting added or repeated.
LAMELLA_LAZY Tensor sum_to(const Tensor& tensor, IntArrayRef sizes, bool always_copy = false) {
  Tensor sum = tensor.sum_to_size(sizes);
  return always_copy && sum.is_same(tensor) ? sum.clone() : sum;
}

}  // namespace at
