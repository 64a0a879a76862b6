// The parameters of the kernels of sort.h and radix.h, for the host.
#pragma once
#include <cstdint>

namespace lamella::cuda {

struct SortParameters {
  int64_t lines, length;        // contiguous lines of at most kTile elements
  uint64_t from, to, to_index;  // indices are int64
  int32_t descending;
  int32_t tile;  // a power of two, at least the length
};
inline constexpr int kTile = 1024;
inline constexpr int kTileThreads = kTile / 2;

struct RadixParameters {
  int64_t lines, length;         // contiguous lines of less than 2^31 elements
  int64_t tiles, parts;          // of a line: in a pass, and of radix_counts
  uint64_t from, from_index;     // the first pass has no indices
  uint64_t to, to_index;         // indices are int32, those of the last pass int64
  uint64_t tickets;              // the tiles taken in each pass; all words are 0 at first
  uint64_t counts;               // [lines][passes][256]
  uint64_t status, next_status;  // [lines][tiles][256] of this pass and of the next
  uint64_t infinity;             // the bits of floating-point infinity, or 0
  int32_t is_signed, descending, pass, is_last;
};
inline constexpr int kRadixThreads = 256, kRadixEach = 16;
inline constexpr int kRadixTile = kRadixThreads * kRadixEach;

}  // namespace lamella::cuda
