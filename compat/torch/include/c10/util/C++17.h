// PyTorch's own versions of parts of the standard library.
#pragma once
#include <c10/lamella_names.h>
#include <c10/macros/Macros.h>

#include <type_traits>
#include <utility>

namespace c10 {
template <class F, class... A>
using invoke_result = std::invoke_result<F, A...>;
template <class F, class... A>
using invoke_result_t = std::invoke_result_t<F, A...>;

namespace guts {
template <class... T>
using conjunction = std::conjunction<T...>;
template <class... T>
using disjunction = std::disjunction<T...>;
template <bool B>
using bool_constant = std::bool_constant<B>;
template <class T>
using negation = std::negation<T>;
template <class... T>
using void_t = std::void_t<T...>;

// Calls the first callable if Condition is true, else the second.
template <bool Condition, class Then, class Else>
constexpr decltype(auto) if_constexpr(Then&& then_callback, Else&& else_callback) {
  if constexpr (Condition) {
    return std::forward<Then>(then_callback)();
  } else {
    return std::forward<Else>(else_callback)();
  }
}
}  // namespace guts
}  // namespace c10
