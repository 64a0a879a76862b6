// c10::ForcedUnroll: f(0), f(1), … as constants of the compiler.
#pragma once
#include <type_traits>
#include <utility>

#include <c10/macros/Macros.h>

namespace c10 {
template <int n>
struct ForcedUnroll {
  // The last comes first, as in PyTorch.
  template <class F, class... A>
  C10_ALWAYS_INLINE void operator()(const F& f, A... args) const {
    [&]<int... i>(std::integer_sequence<int, i...>) {
      (f(std::integral_constant<int, n - 1 - i>{}, args...), ...);
    }(std::make_integer_sequence<int, n>{});
  }
};
}  // namespace c10
