// c10::guts: traits of types.
#pragma once
#include <c10/lamella_names.h>

#include <optional>
#include <type_traits>

namespace c10::guts {

template <class T, class = void>
struct is_equality_comparable : std::false_type {};
template <class T>
struct is_equality_comparable<T, std::void_t<decltype(std::declval<T&>() == std::declval<T&>())>>
    : std::true_type {};

template <class T, class = void>
struct is_hashable : std::false_type {};
template <class T>
struct is_hashable<T, std::void_t<decltype(std::hash<T>()(std::declval<T&>()))>> : std::true_type {
};

template <class T>
using is_function_type = std::is_function<T>;

template <template <class...> class Template, class T>
struct is_instantiation_of : std::false_type {};
template <template <class...> class Template, class... A>
struct is_instantiation_of<Template, Template<A...>> : std::true_type {};
template <template <class...> class Template, class... A>
using is_instantiation_of_t = typename is_instantiation_of<Template, A...>::type;

}  // namespace c10::guts
