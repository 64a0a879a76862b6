// MemoryFormat: the order in which dimensions are laid out, and the strides of each order.
#pragma once
#include <cstdint>
#include <string>

#include "lamella/core/array_ref.h"

namespace lamella {

enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,    // N H W C in memory, dimensions N C H W
  ChannelsLast3d = 3,  // N D H W C in memory, dimensions N C D H W
  NumOptions
};

inline constexpr const char* toString(MemoryFormat format) {
  constexpr const char* names[] = {"contiguous_format", "preserve_format", "channels_last",
                                   "channels_last_3d"};
  auto index = static_cast<uint8_t>(format);
  return index < 4 ? names[index] : "unknown";
}
inline void append(std::string& out, MemoryFormat format) { append(out, toString(format)); }

// The product modulo 2^64. Strides of a tensor without elements may overflow, since they are never
// used.
inline int64_t wrapping_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Row-major strides, counted in elements; a dimension of size 0 counts as 1.
inline void contiguous_strides(IntArrayRef sizes, int64_t* strides) {
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride = wrapping_product(stride, sizes[d] > 1 ? sizes[d] : 1);
  }
}

namespace detail {
// Channels innermost, then the spatial dimensions from the last, then the batch.
inline void channels_last_strides(IntArrayRef sizes, size_t batch_dims, int64_t* strides) {
  size_t channel = batch_dims;
  int64_t stride = 1;
  auto place = [&](size_t d) {
    strides[d] = stride;
    stride = wrapping_product(stride, sizes[d] > 1 ? sizes[d] : 1);
  };
  place(channel);
  for (size_t d = sizes.size() - 1; d > channel; --d) place(d);
  if (batch_dims == 1) strides[0] = stride;
}

// True if the strides are ordered as in channels_last, possibly with gaps. Dimensions of size 1 are
// ignored; a shape that fits both orders counts as contiguous.
inline bool strides_like_channels_last(IntArrayRef sizes, IntArrayRef strides) {
  if (strides[1] == 0) return false;
  int64_t least = 0;
  auto follows = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    // A batch of one image with one channel would pass for both orders.
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (sizes[d] > 1) least = wrapping_product(least, sizes[d]);
    return true;
  };
  if (!follows(1)) return false;
  for (size_t d = sizes.size() - 1; d > 1; --d) {
    if (!follows(d)) return false;
  }
  return follows(0);
}
}  // namespace detail

// Writes the strides of a dense tensor in `format` (not Preserve). Throws if the number of
// dimensions does not fit the format.
LAMELLA_LAZY inline void strides_of_format(IntArrayRef sizes, MemoryFormat format,
                                           int64_t* strides) {
  switch (format) {
    case MemoryFormat::Contiguous:
      contiguous_strides(sizes, strides);
      return;
    case MemoryFormat::ChannelsLast:
      LAMELLA_CHECK(sizes.size() == 4, "channels_last: expected 4 dimensions, got ", sizes.size());
      detail::channels_last_strides(sizes, 1, strides);
      return;
    case MemoryFormat::ChannelsLast3d:
      LAMELLA_CHECK(sizes.size() == 5, "channels_last_3d: expected 5 dimensions, got ",
                    sizes.size());
      detail::channels_last_strides(sizes, 1, strides);
      return;
    default:
      LAMELLA_CHECK(false, "memory_format: expected a format with strides of its own, got ",
                    format);
  }
}

}  // namespace lamella
