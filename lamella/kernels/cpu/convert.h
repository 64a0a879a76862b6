// Conversion and movement of runs of elements, of any type to any other.
#pragma once
#include <array>
#include <cstdint>

#include "lamella/kernels/cpu/loops.h"

namespace lamella::native {

// n elements from src to dst, both contiguous; they must not overlap.
using ConvertFn = void (*)(const void* src, void* dst, int64_t n);

// Converts as PyTorch does: a fraction is cut off, anything but zero is true, a complex number
// gives its real part. Both types must have loop_index() >= 0.
ConvertFn get_convert(ScalarType from, ScalarType to);

// All conversions, [from][to] by loop_index().
using ConversionTable = std::array<std::array<ConvertFn, kConvertTypes>, kConvertTypes>;
using conversions_fn = const ConversionTable& (*)();
LAMELLA_DECLARE_DISPATCH(conversions_fn, conversions_stub);

// How the driver of pointwise loops reads transposed operands and writes large results.
struct TileLoops {
  // A plane whose columns are contiguous and begin `stride` bytes apart, to rows without gaps. The
  // next plane lies `next` bytes further: it is fetched meanwhile.
  void (*turn)(const char* src, int64_t stride, char* dst, int64_t rows, int64_t columns,
               int64_t bytes, int64_t next);
  // To memory that is not read again soon, past the caches. `dst` is at a multiple of 64 bytes.
  // Other threads see it after end_stream().
  void (*stream)(const char* src, char* dst, int64_t bytes);
  void (*end_stream)();
};
using tile_loops_fn = const TileLoops& (*)();
LAMELLA_DECLARE_DISPATCH(tile_loops_fn, tile_loops_stub);

// Bytes read and written from which an output goes past the caches: what it would evict was of no
// use to anybody, and its own lines need not be read first.
inline constexpr int64_t kStreamedBytes = int64_t{32} << 20;

// n elements of `bytes` bytes between strided places; strides in bytes.
void move_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n,
                   int64_t bytes);
// One element, n times, to contiguous memory.
void fill_elements(const char* src, char* dst, int64_t n, int64_t bytes);

}  // namespace lamella::native
