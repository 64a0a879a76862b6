// Compiler attributes used by the public headers.
#pragma once

#define LAMELLA_LIKELY(x) (__builtin_expect(static_cast<bool>(x), 1))
#define LAMELLA_UNLIKELY(x) (__builtin_expect(static_cast<bool>(x), 0))
#define LAMELLA_COLD __attribute__((noinline, cold))
#define LAMELLA_ALWAYS_INLINE inline __attribute__((always_inline))
#define LAMELLA_NOINLINE __attribute__((noinline))
// Types whose type_info must be one across shared libraries.
#define LAMELLA_PUBLIC __attribute__((visibility("default")))
// Variables of headers: one in each library. Shared ones would be of a kind (GNU unique) that keeps
// the libraries that have them from being unloaded.
#define LAMELLA_HIDDEN __attribute__((visibility("hidden")))
// What Lamella's own Python extension needs beyond the C ABI. Shipped in lockstep with it; not for
// anyone else.
#define LAMELLA_PRIVATE_API __attribute__((visibility("default")))

#define LAMELLA_CONCAT_IMPL(a, b) a##b
#define LAMELLA_CONCAT(a, b) LAMELLA_CONCAT_IMPL(a, b)
#define LAMELLA_UNIQUE_NAME(prefix) LAMELLA_CONCAT(prefix, __COUNTER__)
#define LAMELLA_STRINGIZE_IMPL(x) #x
#define LAMELLA_STRINGIZE(x) LAMELLA_STRINGIZE_IMPL(x)
