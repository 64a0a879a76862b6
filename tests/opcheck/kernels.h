// Helpers for the operators of both libraries.
#pragma once
#include <lamella/lamella.h>

namespace opcheck {

using lamella::Tensor;

// result[i] = f(x[i]) for i in [0, count), between contiguous tensors of one floating-point dtype.
template <class F>
void map_into(const Tensor& x, const Tensor& result, int64_t count, F f) {
  LAMELLA_CHECK_TYPE(x.scalar_type() == lamella::kFloat || x.scalar_type() == lamella::kDouble,
                     "expected 'x' to be float32 or float64, got ", x.scalar_type());
  if (x.scalar_type() == lamella::kFloat) {
    const float* from = x.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(f(from[i]));
  } else {
    const double* from = x.const_data_ptr<double>();
    double* to = result.mutable_data_ptr<double>();
    for (int64_t i = 0; i < count; ++i) to[i] = f(from[i]);
  }
}

// A contiguous tensor of the same shape, whatever the strides of x. Also a kernel for Meta.
inline Tensor fresh_like(const Tensor& x) { return lamella::empty(x.sizes(), x.options()); }

template <class F>
Tensor map(const Tensor& x, F f) {
  Tensor from = x.contiguous();
  Tensor result = fresh_like(from);
  map_into(from, result, from.numel(), f);
  return result;
}

inline Tensor doubled(const Tensor& x) {
  return map(x, [](double value) { return 2 * value; });
}

}  // namespace opcheck
