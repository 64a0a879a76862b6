// c10::guts::typelist::typelist: a list of types.
#pragma once
#include <c10/lamella_names.h>

#include <cstddef>
#include <type_traits>

namespace c10::guts::typelist {
template <class... T>
struct typelist final {};
template <class List>
struct size;
template <class... T>
struct size<typelist<T...>> : std::integral_constant<size_t, sizeof...(T)> {};
}  // namespace c10::guts::typelist
