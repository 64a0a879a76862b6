// StableIValue: torch::stable::detail::to, from.
#pragma once
#include <torch/csrc/stable/tensor.h>

#include "lamella/dispatch/word_kernel.h"

using StableIValue = lamella::Word;

namespace torch::stable::detail {
template <class T>
StableIValue from(const T& value) {
  return lamella::WordOf<T>::to(value);
}
template <class T>
T to(StableIValue word) {
  return lamella::WordOf<T>::from(word);
}
}  // namespace torch::stable::detail

// PyTorch declares them in this namespace as well.
template <class T>
StableIValue from(const T& value) {
  return torch::stable::detail::from(value);
}
template <class T>
T to(StableIValue word) {
  return torch::stable::detail::to<T>(word);
}
