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
LAMELLA_KERNEL(conversions_fn, conversions_on);

// Functions with which the driver of pointwise loops reads transposed operands and writes large
// results.
struct TileLoops {
  // Transposes a plane whose columns are contiguous and begin `stride` bytes apart to dense rows.
  // Prefetches the next plane, which lies `next` bytes further.
  void (*turn)(const char* src, int64_t stride, char* dst, int64_t rows, int64_t columns,
               int64_t bytes, int64_t next);
  // Copies to memory that is not read soon, bypassing the caches. `dst` must be aligned to 64
  // bytes. Other threads see the data after end_stream().
  void (*stream)(const char* src, char* dst, int64_t bytes);
  void (*end_stream)();
};
using tile_loops_fn = const TileLoops& (*)();
LAMELLA_KERNEL(tile_loops_fn, tile_loops_on);

// From this many bytes read and written on, an output bypasses the caches: caching it would only
// evict other data, and its lines need not be read before they are written.
inline constexpr int64_t kStreamedBytes = int64_t{32} << 20;

// n elements of `bytes` bytes between strided places; strides in bytes.
void move_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n,
                   int64_t bytes);
// Fills contiguous memory with n copies of one element.
void fill_elements(const char* src, char* dst, int64_t n, int64_t bytes);

}  // namespace lamella::native
