// Conversion and movement of runs of elements, of any type to any other.
#pragma once
#include <cstdint>

#include "lamella/kernels/cpu/loops.h"

namespace lamella::native {

// n elements from src to dst, both contiguous; they must not overlap.
using ConvertFn = void (*)(const void* src, void* dst, int64_t n);

// Converts as PyTorch does: a fraction is cut off, anything but zero is true, a complex number
// gives its real part. Both types must have loop_index() >= 0.
ConvertFn get_convert(ScalarType from, ScalarType to);

// Fast conversions of this capability by loop_index(), from the first to the second type: between
// the types of FastTypes, and from and to float16 and bfloat16 by way of float. Null for others.
struct FastConversions {
  ConvertFn of[kConvertTypes][kConvertTypes];
};
using FastTypes = RealBoolTypes;
using fast_conversions_fn = const FastConversions& (*)();
LAMELLA_DECLARE_DISPATCH(fast_conversions_fn, fast_conversions_stub);

// n elements of `bytes` bytes between strided places; strides in bytes.
void move_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n,
                   int64_t bytes);
// One element, n times, to contiguous memory.
void fill_elements(const char* src, char* dst, int64_t n, int64_t bytes);

}  // namespace lamella::native
