// torch::utils: flattens tensors of one dtype into a vector, and splits it again.
#pragma once
#include <ATen/Functions.h>

#include <vector>

namespace torch::utils {
inline lamella::Tensor flatten_dense_tensors(lamella::TensorList tensors) {
  std::vector<lamella::Tensor> flat;
  for (const lamella::Tensor& tensor : tensors) {
    flat.push_back(tensor.contiguous().view({-1}));
  }
  return lamella::cat(flat);
}
// Splits `flat` into parts with the shapes of the tensors. Empty tensors get their own memory.
inline std::vector<lamella::Tensor> unflatten_dense_tensors(const lamella::Tensor& flat,
                                                            lamella::TensorList tensors) {
  std::vector<lamella::Tensor> parts;
  int64_t offset = 0;
  for (const lamella::Tensor& tensor : tensors) {
    int64_t numel = tensor.numel();
    parts.push_back(numel == 0 ? lamella::empty(tensor.sizes(), flat.options())
                               : flat.narrow(0, offset, numel).view(tensor.sizes()));
    offset += numel;
  }
  return parts;
}
}  // namespace torch::utils
