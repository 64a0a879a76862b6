// Compiler attributes used by the public headers, and two helpers that need no other header.
#pragma once

#define LAMELLA_LIKELY(x) (__builtin_expect(static_cast<bool>(x), 1))
#define LAMELLA_UNLIKELY(x) (__builtin_expect(static_cast<bool>(x), 0))
#define LAMELLA_COLD __attribute__((noinline, cold))
#define LAMELLA_ALWAYS_INLINE inline __attribute__((always_inline))
#define LAMELLA_NOINLINE __attribute__((noinline))
// Note [Lazy functions]
//   The templates that an ordinary inline function uses are instantiated in every file that
//   includes it, called or not; those of a function template only where it is called. In headers
//   that every extension includes, functions that use strings, vectors and optionals are therefore
//   templates with an unused parameter.
#define LAMELLA_LAZY template <int lazy_ = 0>
// For types that must have one type_info across shared libraries.
#define LAMELLA_PUBLIC __attribute__((visibility("default")))
// For variables in headers: each library has its own. Shared ones would be GNU unique symbols,
// which keep their libraries from being unloaded.
#define LAMELLA_HIDDEN __attribute__((visibility("hidden")))
// Functions beyond the C ABI that Lamella's own libraries use. They are shipped in lockstep; other
// libraries must not use them.
#define LAMELLA_PRIVATE_API __attribute__((visibility("default")))

// Note [Questions about types]
//   A standard type trait instantiates a class for each type that it is applied to, the arithmetic
//   ones eight. Conditions that overload resolution evaluates for every operand are therefore
//   concepts over compiler builtins, which stop at the first `false`.
namespace lamella::detail {
template <class T>
concept Enum = __is_enum(T);
// Integers, floating-point numbers and bool.
template <class T>
concept Arithmetic = !__is_class(T) && !__is_union(T) && !__is_enum(T) && requires(T a) { a / a; };
template <Arithmetic T>
inline constexpr bool has_fractions =
    static_cast<T>(0.5) != static_cast<T>(0) && static_cast<T>(0.5) != static_cast<T>(1);
template <Arithmetic T>
inline constexpr bool has_negatives = static_cast<T>(-1) < static_cast<T>(0);
// T as a dependent type in templates over `A`, so that uses of T are compiled when instantiated.
template <class A, class T>
struct Later {
  using type = T;
};
template <int lazy_>
struct LaterBy {
  template <class T>
  using type = T;
};
// T, and a reference, as dependent ones in lazy functions.
template <int lazy_, class T>
using Lazily = typename LaterBy<lazy_>::template type<T>;
template <int lazy_, class T>
constexpr T& lazily(T& value) {
  return value;
}
}  // namespace lamella::detail

// std::swap and std::exchange for pointers and plain structures, without the many type traits that
// the standard ones instantiate.
namespace lamella::detail {
template <class T>
constexpr void swap_plain(T& a, T& b) noexcept {
  T kept = a;
  a = b;
  b = kept;
}
template <class T>
constexpr T* take(T*& pointer) noexcept {
  T* taken = pointer;
  pointer = nullptr;
  return taken;
}
}  // namespace lamella::detail

#define LAMELLA_CONCAT_IMPL(a, b) a##b
#define LAMELLA_CONCAT(a, b) LAMELLA_CONCAT_IMPL(a, b)
#define LAMELLA_UNIQUE_NAME(prefix) LAMELLA_CONCAT(prefix, __COUNTER__)
