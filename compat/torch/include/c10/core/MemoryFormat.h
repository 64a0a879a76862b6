// c10::MemoryFormat.
#pragma once
#include <vector>

#include <c10/lamella_names.h>
#include "lamella/core/memory_format.h"

namespace lamella {
constexpr MemoryFormat get_contiguous_memory_format() { return MemoryFormat::Contiguous; }
// sizes: 4 (N C H W) or 3 (C H W) entries.
template <class T = int64_t>
inline std::vector<T> get_channels_last_strides_2d(IntArrayRef sizes) {
  LAMELLA_CHECK(sizes.size() == 4 || sizes.size() == 3,
                "channels_last: expected 3 or 4 dimensions, got ", sizes.size());
  std::vector<T> strides(sizes.size());
  detail::channels_last_strides(sizes, sizes.size() - 3, strides.data());
  return strides;
}
// sizes: 5 (N C D H W) or 4 (C D H W) entries.
template <class T = int64_t>
inline std::vector<T> get_channels_last_strides_3d(IntArrayRef sizes) {
  LAMELLA_CHECK(sizes.size() == 5 || sizes.size() == 4,
                "channels_last_3d: expected 4 or 5 dimensions, got ", sizes.size());
  std::vector<T> strides(sizes.size());
  detail::channels_last_strides(sizes, sizes.size() - 4, strides.data());
  return strides;
}
inline bool is_channels_last_strides_2d(IntArrayRef sizes, IntArrayRef strides) {
  return sizes.size() == 4 && detail::strides_like_channels_last(sizes, strides);
}
inline bool is_channels_last_strides_3d(IntArrayRef sizes, IntArrayRef strides) {
  return sizes.size() == 5 && detail::strides_like_channels_last(sizes, strides);
}
}  // namespace lamella
