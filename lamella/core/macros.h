// Compiler attributes used by the public headers, and two helpers that need no other header.
#pragma once

#define LAMELLA_LIKELY(x) (__builtin_expect(static_cast<bool>(x), 1))
#define LAMELLA_UNLIKELY(x) (__builtin_expect(static_cast<bool>(x), 0))
#define LAMELLA_COLD __attribute__((noinline, cold))
#define LAMELLA_ALWAYS_INLINE inline __attribute__((always_inline))
#define LAMELLA_NOINLINE __attribute__((noinline))
// Note [Lazy functions]
//   What an ordinary inline function needs is instantiated in every file that sees the function,
//   called or not; a template's is where it is called. In headers that every extension reads,
//   functions that work on strings, vectors and optionals are therefore templates in name.
#define LAMELLA_LAZY template <int lazy_ = 0>
// Types whose type_info must be one across shared libraries.
#define LAMELLA_PUBLIC __attribute__((visibility("default")))
// Variables of headers: one in each library. Shared ones would be of a kind (GNU unique) that keeps
// the libraries that have them from being unloaded.
#define LAMELLA_HIDDEN __attribute__((visibility("hidden")))
// What Lamella's own Python extension needs beyond the C ABI. Shipped in lockstep with it; not for
// anyone else.
#define LAMELLA_PRIVATE_API __attribute__((visibility("default")))

// Note [Questions about types]
//   Each standard trait is a class to instantiate for each type that is asked about, and the
//   arithmetic ones are eight. What overload resolution asks of every operand is therefore asked by
//   concepts over the compiler's own words, whose first `false` ends the question.
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
// T, for templates over `A`: nothing that they do with it is compiled before they are instantiated.
template <class A, class T>
struct Later {
  using type = T;
};
}  // namespace lamella::detail

// std::swap and std::exchange for pointers and plain structures. Those ask many traits of the type,
// each of which is a class to instantiate.
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
#define LAMELLA_STRINGIZE_IMPL(x) #x
#define LAMELLA_STRINGIZE(x) LAMELLA_STRINGIZE_IMPL(x)
