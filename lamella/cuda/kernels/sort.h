// Sorting of lines: tiles in shared memory, then merges of ever longer runs.
//
// Note [Sorting]
//   A tile of a line is sorted by a bitonic network over pairs of an element and its index, which
//   makes the order strict, so the result is stable. Then pairs of neighbouring runs are merged: a
//   thread finds the place of its element as the rank in its own run and, by binary search, in the
//   other one. NaN is greater than all numbers.
#pragma once
#include "lamella/cuda/kernels/sort_parameters.h"
#include "lamella/cuda/kernels/walk.h"

namespace lamella::cuda {

// Whether a comes before b, whatever their places.
template <class T>
LAMELLA_DEVICE bool precedes(T a, T b, bool descending) {
  if (descending) return a > b || (a != a && b == b);
  return a < b || (b != b && a == a);
}

// A block sorts kTile elements: one piece of a long line, or as many short lines as fit.
template <class T>
LAMELLA_DEVICE void sort_tiles(const SortParameters& p) {
  using C = computed_as<T>;
  __shared__ C keys[kTile];
  __shared__ int16_t places[kTile];
  const int64_t pieces = (p.length + kTile - 1) / kTile;  // of a line
  const int64_t total = p.lines * pieces;
  const int tile = p.tile, beside = kTile / tile;
  const bool descending = p.descending != 0;
  for (int64_t first = int64_t{blockIdx.x} * beside; first < total;
       first += int64_t{gridDim.x} * beside) {
    const int64_t left = p.length - first % pieces * kTile;
    const int count = left < tile ? static_cast<int>(left) : tile;
    // The position of slot i in the lines; -1: it is empty.
    auto position = [&](int i) {
      const int64_t piece = first + i / tile;
      if (i % tile >= count || piece >= total) return int64_t{-1};
      return piece / pieces * p.length + piece % pieces * kTile + i % tile;
    };
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kTileThreads) {
      const int64_t at = position(i);
      keys[i] = at >= 0 ? loaded(device_pointer<const T>(p.from)[at]) : C{};
      places[i] = static_cast<int16_t>(i % tile);
    }
    // Places of `count` and more hold nothing, and come after all others.
    auto is_after = [&](int a, int b) {
      const int x = places[a], y = places[b];
      if (x >= count || y >= count) return x >= count && (y < count || x > y);
      if (precedes(keys[b], keys[a], descending)) return true;
      return !precedes(keys[a], keys[b], descending) && x > y;
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
      device_pointer<T>(p.to)[at] = stored<T>(keys[i]);
      device_pointer<int64_t>(p.to_index)[at] = at % p.length - i % tile + places[i];
    }
    __syncthreads();
  }
}

// Elements of the run [begin, end) that come before `value`, or with `equals` not after it.
template <class T>
LAMELLA_DEVICE int64_t rank_in(const T* line, int64_t begin, int64_t end, computed_as<T> value,
                               bool equals, bool descending) {
  const int64_t first = begin;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const auto other = loaded(line[middle]);
    if (equals ? !precedes(value, other, descending) : precedes(other, value, descending)) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin - first;
}
template <class T>
LAMELLA_DEVICE void merge_runs(const SortParameters& p, int64_t thread, int64_t threads) {
  const bool descending = p.descending != 0;
  for (int64_t i = thread; i < p.lines * p.length; i += threads) {
    const int64_t line = i / p.length, at = i - line * p.length, start = line * p.length;
    const T* from = device_pointer<const T>(p.from) + start;
    const int64_t pair = at / (2 * p.width) * (2 * p.width);
    const int64_t middle = pair + p.width < p.length ? pair + p.width : p.length;
    const int64_t end = middle + p.width < p.length ? middle + p.width : p.length;
    const T element = from[at];
    const auto value = loaded(element);
    const int64_t to =
        at < middle ? at + rank_in(from, middle, end, value, false, descending)
                    : pair + (at - middle) + rank_in(from, pair, middle, value, true, descending);
    device_pointer<T>(p.to)[start + to] = element;
    device_pointer<int64_t>(p.to_index)[start + to] =
        device_pointer<const int64_t>(p.from_index)[i];
  }
}

// f(kernel, Parameters, body), and rows of Note [Kernels of blocks]
#define LAMELLA_MERGE_KERNELS(f) LAMELLA_EACH_TYPE(LAMELLA_MERGE_KERNEL, f)
#define LAMELLA_MERGE_KERNEL(f, T, suffix) f(merge_runs_##suffix, SortParameters, merge_runs<T>)
#define LAMELLA_TILE_KERNELS LAMELLA_EACH_TYPE(LAMELLA_TILE_KERNEL, )
#define LAMELLA_TILE_KERNEL(f, T, suffix) \
  LAMELLA_BLOCK_KERNEL(sort_tiles_##suffix, kTileThreads, SortParameters, sort_tiles<T>)

}  // namespace lamella::cuda
