// Functions of a bare number that is a dimension, where an overload with a bool would take it.
#pragma once
#include "lamella/api/functions.h"

namespace lamella {

template <detail::Dimension I>
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, I dim) {
  return var_mean(self, IntArrayRef{static_cast<int64_t>(dim)});
}
template <detail::Dimension I>
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, I dim) {
  return std_mean(self, IntArrayRef{static_cast<int64_t>(dim)});
}

}  // namespace lamella
