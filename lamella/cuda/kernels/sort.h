// Sorting of short lines, in shared memory. radix.h has long ones.
//
// Note [Sorting]
//   Lines are sorted by a bitonic network over pairs of an element and its index, which makes the
//   order strict, so the result is stable. NaN is greater than all numbers.
#pragma once
#include "lamella/cuda/kernels/sort_parameters.h"
#include "lamella/cuda/kernels/walk.h"

namespace lamella::cuda {

// A block sorts as many lines as fit into kTile elements.
template <class T>
LAMELLA_DEVICE void sort_tiles(const SortParameters& p) {
  using C = computed_as<T>;
  __shared__ C keys[kTile];
  __shared__ int16_t places[kTile];
  const int tile = p.tile, beside = kTile / tile, count = static_cast<int>(p.length);
  const bool descending = p.descending != 0;
  for (int64_t first = int64_t{blockIdx.x} * beside; first < p.lines;
       first += int64_t{gridDim.x} * beside) {
    // The position of slot i in the lines; -1: it is empty.
    auto position = [&](int i) {
      const int64_t line = first + i / tile;
      return i % tile >= count || line >= p.lines ? int64_t{-1} : line * count + i % tile;
    };
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kTileThreads) {
      const int64_t at = position(i);
      keys[i] = at >= 0 ? loaded(device_pointer<const T>(p.from)[at]) : C{};
      places[i] = static_cast<int16_t>(i % tile);
    }
    auto precedes = [&](C x, C y) { return descending ? is_before(y, x) : is_before(x, y); };
    // Places of `count` and more hold nothing, and come after all others.
    auto is_after = [&](int a, int b) {
      const int x = places[a], y = places[b];
      if (x >= count || y >= count) return x >= count && (y < count || x > y);
      if (precedes(keys[b], keys[a])) return true;
      return !precedes(keys[a], keys[b]) && x > y;
    };
    for (int size = 2; size <= tile; size *= 2) {
      for (int step = size / 2; step > 0; step /= 2) {
        __syncthreads();
        const int t = static_cast<int>(threadIdx.x);
        const int a = 2 * step * (t / step) + t % step, b = a + step;
        const bool up = size == tile || (a & size) == 0;
        if (is_after(a, b) == up) {
          const C key = keys[a];
          keys[a] = keys[b];
          keys[b] = key;
          const int16_t place = places[a];
          places[a] = places[b];
          places[b] = place;
        }
      }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kTileThreads) {
      const int64_t at = position(i);
      if (at < 0) continue;
      device_pointer<T>(p.to)[at] = stored_as<T>(keys[i]);
      device_pointer<int64_t>(p.to_index)[at] = places[i];
    }
    __syncthreads();
  }
}

// Rows of Note [Kernels of blocks]
#define LAMELLA_TILE_KERNELS LAMELLA_EACH_TYPE(LAMELLA_TILE_KERNEL, )
#define LAMELLA_TILE_KERNEL(f, T, suffix) \
  LAMELLA_BLOCK_KERNEL(sort_tiles_##suffix, kTileThreads, SortParameters, sort_tiles<T>)

}  // namespace lamella::cuda
