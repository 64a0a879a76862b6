// c10::overloaded: combines callables into one overload set, for std::visit.
#pragma once
#include <c10/lamella_names.h>

namespace c10 {
namespace detail {
template <class... F>
struct overloaded_t : F... {
  using F::operator()...;
};
}  // namespace detail
template <class... F>
detail::overloaded_t<F...> overloaded(const F&... functions) {
  return {functions...};
}
}  // namespace c10
