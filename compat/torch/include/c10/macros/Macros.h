// PyTorch's compiler macros.
#pragma once
#include <c10/lamella_names.h>
#include <c10/macros/Export.h>

#include "lamella/core/macros.h"

#define C10_LIKELY(x) LAMELLA_LIKELY(x)
#define C10_UNLIKELY(x) LAMELLA_UNLIKELY(x)
#define C10_ALWAYS_INLINE LAMELLA_ALWAYS_INLINE
#define C10_ALWAYS_INLINE_UNLESS_MOBILE LAMELLA_ALWAYS_INLINE
#define C10_ALWAYS_INLINE_ATTRIBUTE __attribute__((always_inline))
#define C10_NOINLINE LAMELLA_NOINLINE
#define C10_UNUSED __attribute__((unused))
#define C10_USED __attribute__((used))
#define C10_NODISCARD [[nodiscard]]
#define C10_FALLTHROUGH [[fallthrough]]
#define C10_RESTRICT __restrict
#define C10_HOST
#define C10_DEVICE
#define C10_HOST_DEVICE

#define C10_CONCATENATE_IMPL(a, b) LAMELLA_CONCAT_IMPL(a, b)
#define C10_CONCATENATE(a, b) LAMELLA_CONCAT(a, b)
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(prefix) LAMELLA_UNIQUE_NAME(prefix)
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)

// A constant string member of a generated operator's struct.
#define STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA(field, value) \
  static constexpr const char* field = value;
#define STATIC_CONST_STR_OUT_OF_LINE_FOR_WIN_CUDA(cls, field, value)
