// at::CPU_tensor_apply2 to 4: a function called with the entries of tensors of equally many
// entries, in the order of their indices.
#pragma once
#include <ATen/core/Tensor.h>

namespace at {
namespace detail {
template <class T>
T& entry_of(const Tensor& tensor, int64_t index) {
  T* entry = tensor.mutable_data_ptr<T>();
  for (int64_t d = tensor.dim(); d-- > 0; index /= tensor.size(d)) {
    entry += index % tensor.size(d) * tensor.stride(d);
  }
  return *entry;
}
inline void check_entries(const Tensor& a, const Tensor& b) {
  LAMELLA_CHECK(a.numel() == b.numel(), "CPU_tensor_apply: expected tensors of ", a.numel(),
                " entries, got one of ", b.numel());
}
}  // namespace detail
template <class A, class B, class Op>
void CPU_tensor_apply2(const Tensor& a, const Tensor& b, const Op& op) {
  detail::check_entries(a, b);
  for (int64_t i = 0; i < a.numel(); ++i) op(detail::entry_of<A>(a, i), detail::entry_of<B>(b, i));
}
template <class A, class B, class C, class Op>
void CPU_tensor_apply3(const Tensor& a, const Tensor& b, const Tensor& c, const Op& op) {
  detail::check_entries(a, b);
  int64_t i = 0;
  CPU_tensor_apply2<A, C>(a, c, [&](A& x, C& z) { op(x, detail::entry_of<B>(b, i++), z); });
}
template <class A, class B, class C, class D, class Op>
void CPU_tensor_apply4(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d,
                       const Op& op) {
  detail::check_entries(a, c);
  int64_t i = 0;
  CPU_tensor_apply3<A, B, D>(a, b, d,
                             [&](A& x, B& y, D& w) { op(x, y, detail::entry_of<C>(c, i++), w); });
}
}  // namespace at
