// c10::ForcedUnroll: calls f(0), f(1), …, with compile-time constants.
#pragma once
#include <type_traits>
#include <utility>

#include <c10/macros/Macros.h>

namespace c10 {
template <int n>
struct ForcedUnroll {
  template <class F, class... A>
  C10_ALWAYS_INLINE void operator()(const F& f, A... args) const {
    [&]<int... i>(std::integer_sequence<int, i...>) {
      (f(std::integral_constant<int, i>{}, args...), ...);
    }(std::make_integer_sequence<int, n>{});
  }
};
}  // namespace c10
