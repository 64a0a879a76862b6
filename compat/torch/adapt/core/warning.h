// Warnings of C++ code: texts that are passed to a handler, by default one that writes to stderr.
#pragma once
#include <cstdio>
#include <string>

#include "lamella/core/error.h"

namespace lamella {

using WarningHandler = void (*)(const char* file, unsigned line, const char* text);

namespace detail {
LAMELLA_COLD inline void print_warning(const char* file, unsigned line, const char* text) {
  std::fprintf(stderr, "[%s:%u] Warning: %s\n", file, line, text);
}
LAMELLA_PUBLIC inline WarningHandler warning_handler = &print_warning;
}  // namespace detail

// Replaces the handler of this process and returns the previous one.
inline WarningHandler set_warning_handler(WarningHandler handler) {
  return __atomic_exchange_n(&detail::warning_handler, handler, __ATOMIC_ACQ_REL);
}

template <class... A>
LAMELLA_COLD void warn(const char* file, unsigned line, const A&... parts) {
  __atomic_load_n(&detail::warning_handler, __ATOMIC_ACQUIRE)(file, line, str(parts...).c_str());
}

// LAMELLA_WARN(parts...): warns with the concatenated parts.
#define LAMELLA_WARN(...) ::lamella::warn(__FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__)
// The same, but only the first time that this line is reached.
#define LAMELLA_WARN_ONCE(...)                                            \
  do {                                                                    \
    static const bool lamella_warned = (LAMELLA_WARN(__VA_ARGS__), true); \
    static_cast<void>(lamella_warned);                                    \
  } while (false)

}  // namespace lamella
