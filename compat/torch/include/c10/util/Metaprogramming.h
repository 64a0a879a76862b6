// c10::guts: traits of callables, and functions over tuples.
#pragma once
#include <c10/util/C++17.h>
#include <c10/util/TypeList.h>
#include <c10/util/TypeTraits.h>

#include <tuple>
#include <utility>

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

// The function type of a return type and a list of parameter types.
template <class R, class Parameters>
struct make_function_traits;
template <class R, class... A>
struct make_function_traits<R, typelist::typelist<A...>> {
  using type = function_traits<R(A...)>;
};
template <class R, class Parameters>
using make_function_traits_t = typename make_function_traits<R, Parameters>::type;

// Parts of a tuple: the first or last n entries, the entries from an index on, those at given
// indices, and the results of a function of each.
template <class Tuple, size_t... i>
constexpr auto tuple_elements(Tuple tuple, std::index_sequence<i...>) {
  return std::tuple<std::tuple_element_t<i, Tuple>...>(std::get<i>(tuple)...);
}
template <class Tuple, size_t start, size_t n>
constexpr auto tuple_slice(Tuple tuple) {
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return tuple_elements(tuple, std::index_sequence<start + i...>{});
  }(std::make_index_sequence<n>{});
}
template <class Tuple, int n>
constexpr auto tuple_take(Tuple tuple) {
  constexpr size_t size = std::tuple_size_v<Tuple>;
  if constexpr (n >= 0) {
    return tuple_slice<Tuple, 0, n>(tuple);
  } else {
    return tuple_slice<Tuple, size + n, static_cast<size_t>(-n)>(tuple);
  }
}
template <class F, class... A>
auto tuple_map(std::tuple<A...>&& tuple, const F& function) {
  return std::apply(
      [&](auto&&... entries) {
        return std::tuple<decltype(function(std::forward<A>(entries)))...>(
            function(std::forward<A>(entries))...);
      },
      std::move(tuple));
}

}  // namespace c10::guts
