// torch::detail: questions about modules' classes, and torch::apply.
#pragma once
#include <torch/nn.h>

namespace torch {
// Calls the function with each argument.
template <class F, class... A>
void apply(F function, A&&... arguments) {
  (function(std::forward<A>(arguments)), ...);
}
namespace detail {
template <class M>
using is_module = std::is_base_of<lamella::nn::Module, std::decay_t<M>>;
template <class M, class T = void>
using enable_if_module_t = std::enable_if_t<is_module<M>::value, T>;
template <class M>
inline constexpr bool has_forward = requires { &M::forward; };
// What forward() returns for these arguments; void for a module without one.
template <class M, class... A>
struct return_type_of_forward {
  using type = void;
};
template <class M, class... A>
  requires has_forward<M>
struct return_type_of_forward<M, A...> {
  using type = decltype(std::declval<M>().forward(std::declval<A>()...));
};
template <class M, class... A>
using return_type_of_forward_t = typename return_type_of_forward<M, A...>::type;
template <class... T>
constexpr bool check_not_lvalue_references() {
  return !(std::is_lvalue_reference_v<T> || ...);
}
}  // namespace detail
}  // namespace torch
