// PyTorch's compiler macros.
#pragma once
#include <c10/lamella_names.h>
#include <c10/macros/Export.h>
#ifdef __CUDACC__
#include <cassert>
#endif

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
#ifdef __CUDACC__
#define C10_HOST __host__
#define C10_DEVICE __device__
#define C10_HOST_DEVICE __host__ __device__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_WARP_SIZE 32
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#else
#define C10_HOST
#define C10_DEVICE
#define C10_HOST_DEVICE
#ifndef CUDA_KERNEL_ASSERT  // c10/util/Exception.h has one that checks
#define CUDA_KERNEL_ASSERT(condition)
#endif
#endif

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
