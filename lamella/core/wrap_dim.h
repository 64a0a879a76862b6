// Wraps negative dimensions, which count from the end.
#pragma once
#include <cstdint>

#include "lamella/core/error.h"

namespace lamella {
namespace detail {
[[noreturn]] LAMELLA_COLD inline void throw_dim(int64_t dim, int64_t ndim, const char* op) {
  auto given = static_cast<long long>(dim), end = static_cast<long long>(ndim == 0 ? 1 : ndim);
  throw_printf(LAMELLA_INDEX_ERROR, "%s: expected 'dim' in [%lld, %lld], got %lld", op, -end,
               end - 1, given);
}
}  // namespace detail

// `dim` in [0, ndim). A tensor without dimensions takes 0 and -1. Throws IndexError, beginning
// with the operator's name.
inline int64_t maybe_wrap_dim(int64_t dim, int64_t ndim, const char* op = "dim") {
  int64_t extent = ndim == 0 ? 1 : ndim;
  if (LAMELLA_UNLIKELY(dim < -extent || dim >= extent)) detail::throw_dim(dim, ndim, op);
  return dim < 0 ? dim + extent : dim;
}

}  // namespace lamella
