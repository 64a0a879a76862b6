// The parameters of the kernels of sort.h, for the host.
#pragma once
#include <cstdint>

namespace lamella::cuda {

struct SortParameters {
  int64_t lines, length;      // contiguous lines
  int64_t width;              // of the runs that are merged
  uint64_t from, from_index;  // the first pass has no indices
  uint64_t to, to_index;      // indices are int64
  int32_t descending;
  int32_t tile;  // a power of two, at least the shorter of a line and kTile
};
inline constexpr int kTile = 1024;
inline constexpr int kTileThreads = kTile / 2;

}  // namespace lamella::cuda
