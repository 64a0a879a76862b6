// c10::guts: facts about callables.
#pragma once
#include <c10/util/C++17.h>
#include <c10/util/TypeList.h>

namespace c10::guts {
template <class F, class = void>
struct is_functor : std::false_type {};
template <class F>
struct is_functor<F, std::void_t<decltype(&F::operator())>> : std::true_type {};

template <class F>
struct function_traits;
template <class R, class... A>
struct function_traits<R(A...)> {
  using func_type = R(A...);
  using return_type = R;
  using parameter_types = typelist::typelist<A...>;
  static constexpr auto number_of_parameters = sizeof...(A);
};
template <class R, class... A>
struct function_traits<R (*)(A...)> : function_traits<R(A...)> {};
template <class C, class R, class... A>
struct function_traits<R (C::*)(A...)> : function_traits<R(A...)> {};
template <class C, class R, class... A>
struct function_traits<R (C::*)(A...) const> : function_traits<R(A...)> {};
template <class F>
struct infer_function_traits : function_traits<decltype(&F::operator())> {};
template <class R, class... A>
struct infer_function_traits<R (*)(A...)> : function_traits<R(A...)> {};
template <class R, class... A>
struct infer_function_traits<R(A...)> : function_traits<R(A...)> {};
template <class F>
using infer_function_traits_t = infer_function_traits<F>;
}  // namespace c10::guts
