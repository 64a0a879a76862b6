// at::acc_type: the type in which sums are accumulated.
#pragma once
#include <ATen/OpMathType.h>

namespace at {
// On the CPU a sum of floats is a double and a sum of integers an int64.
template <class T, bool is_cuda>
struct AccumulateType {
  using type = std::conditional_t<
      std::is_same_v<T, bool>, bool,
      std::conditional_t<std::is_integral_v<T>, int64_t,
                         std::conditional_t<is_cuda, lamella::compute_type<T>,
                                            std::conditional_t<std::is_same_v<T, float>, double,
                                                               lamella::compute_type<T>>>>>;
};
template <class T, bool is_cuda>
using acc_type = typename AccumulateType<T, is_cuda>::type;
}  // namespace at
