// at::CPU_tensor_apply2 and its kin: call a function with the elements of tensors of one shape.
#pragma once
#include <ATen/TensorIterator.h>

namespace at {
namespace detail {
// The function may write its arguments. The elements are visited on the calling thread.
template <class... T, class F, class... Rest>
void apply_to_elements(F& f, const Tensor& first, const Rest&... rest) {
  TensorIteratorConfig config;
  config.check_all_same_dtype(false).set_check_mem_overlap(false).resize_outputs(false);
  config.add_output(first);
  (config.add_input(rest), ...);
  config.build().for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          [&]<size_t... K>(std::index_sequence<K...>) {
            f(*reinterpret_cast<T*>(data[K] + i * strides[K])...);
          }(std::index_sequence_for<T...>());
        }
      },
      INT64_MAX);
}
}  // namespace detail

template <class A, class B, class F>
void CPU_tensor_apply2(const Tensor& a, const Tensor& b, F f) {
  detail::apply_to_elements<A, B>(f, a, b);
}
template <class A, class B, class C, class F>
void CPU_tensor_apply3(const Tensor& a, const Tensor& b, const Tensor& c, F f) {
  detail::apply_to_elements<A, B, C>(f, a, b, c);
}
template <class A, class B, class C, class D, class F>
void CPU_tensor_apply4(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, F f) {
  detail::apply_to_elements<A, B, C, D>(f, a, b, c, d);
}
}  // namespace at
