// Sorting of long lines by digits.
//
// Note [Sorting by digits]
//   A pass for each 8 bits of an element, the lowest first, moves elements and their indices to
//   the places of their digits, without changing the order of equal ones. Digits of all passes are
//   counted in advance. In a pass a block takes the next tile of a line, publishes how many
//   elements of each digit it has, and finds how many the tiles before have by looking back until
//   a tile that knows the sum of all before it (A. Adinets, D. Merrill, Onesweep, 2022). Tiles are
//   taken in order, so those before are being worked on. Elements are gathered by digit in shared
//   memory first, and neighbours are written to neighbouring places.
#pragma once
#include "lamella/cuda/kernels/sort_parameters.h"
#include "lamella/cuda/kernels/team.h"

namespace lamella::cuda {

#ifdef LAMELLA_KERNEL_BODIES

// Bits in the order of the elements: NaN is greater than all numbers, and zeros are equal.
template <class U>
LAMELLA_DEVICE U ordered_bits(const RadixParameters& p, U x) {
  constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1)), kAll = static_cast<U>(~U{0});
  if (p.infinity != 0) {
    const U size = x & static_cast<U>(~kSign);
    if (size > p.infinity) {
      x = kAll;
    } else {
      x = size == 0 ? kSign : static_cast<U>(x ^ ((x & kSign) != 0 ? kAll : kSign));
    }
  } else if (p.is_signed != 0) {
    x ^= kSign;
  }
  return p.descending != 0 ? static_cast<U>(~x) : x;
}
template <class U>
LAMELLA_DEVICE int digit_of(const RadixParameters& p, U x, int pass) {
  return static_cast<int>(ordered_bits(p, x) >> (8 * pass) & 255);
}

// Counts the digits of all passes. Blocks along x share the tiles of a line, as evenly as `parts`
// of them can.
template <class U>
LAMELLA_DEVICE void radix_counts(const RadixParameters& p) {
  constexpr int kPasses = sizeof(U);
  __shared__ uint32_t counts[kPasses][256];
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t work = blockIdx.x; work < p.lines * p.parts; work += gridDim.x) {
    const int64_t line = work / p.parts, part = work % p.parts;
    for (int pass = 0; pass < kPasses; ++pass) counts[pass][thread] = 0;
    __syncthreads();
    const U* from = device_pointer<const U>(p.from) + line * p.length;
    for (int64_t i = part * kRadixThreads + thread; i < p.length; i += p.parts * kRadixThreads) {
      const U x = ordered_bits(p, from[i]);
      for (int pass = 0; pass < kPasses; ++pass) {
        atomicAdd(&counts[pass][x >> (8 * pass) & 255], 1U);
      }
    }
    __syncthreads();
    for (int pass = 0; pass < kPasses; ++pass) {
      const uint32_t count = counts[pass][thread];
      if (count == 0) continue;
      atomicAdd(&device_pointer<uint32_t>(p.counts)[(line * kPasses + pass) * 256 + thread], count);
    }
    __syncthreads();
  }
}

// The sum of the values of the threads before, of a block of kRadixThreads.
LAMELLA_DEVICE uint32_t sum_before(uint32_t value) {
  scan_block<kRadixThreads>(value, 0U, [](uint32_t a, uint32_t b) { return a + b; });
  return value;
}

// What a tile publishes of a digit: 0 nothing, 1 + its count, or with the highest bit set the count
// up to its end.
inline constexpr uint32_t kWhole = 1U << 31;

template <class U>
LAMELLA_DEVICE void radix_pass(const RadixParameters& p) {
  constexpr int kWarps = kRadixThreads / 32;
  // Elements, then indices.
  alignas(8) __shared__ char moved[kRadixTile * (sizeof(U) < 4 ? 4 : sizeof(U))];
  __shared__ uint32_t of_warp[kWarps][256];
  __shared__ uint32_t starts[256], places[256];
  __shared__ int64_t taken;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  if (thread == 0) {
    taken = atomicAdd(&device_pointer<uint32_t>(p.tickets)[p.pass], 1U);
  }
  for (int w = 0; w < kWarps; ++w) of_warp[w][thread] = 0;
  __syncthreads();
  const int64_t line = taken / p.tiles, tile = taken % p.tiles;
  const int64_t first = line * p.length + tile * kRadixTile;
  const int64_t left = p.length - tile * kRadixTile;
  const int count = left < kRadixTile ? static_cast<int>(left) : kRadixTile;
  const U* from = device_pointer<const U>(p.from) + first;
  const uint32_t below = (1U << lane) - 1;

  // Elements of a warp are 32 apart; the place of each among those of its digit in the warp.
  U elements[kRadixEach];
  uint32_t at[kRadixEach];
  LAMELLA_UNROLL
  for (int k = 0; k < kRadixEach; ++k) {
    const int i = (warp * kRadixEach + k) * 32 + lane;
    elements[k] = i < count ? from[i] : U{};
  }
  LAMELLA_UNROLL
  for (int k = 0; k < kRadixEach; ++k) {
    // What is behind the line's end comes after all others.
    const int i = (warp * kRadixEach + k) * 32 + lane;
    const int digit = i < count ? digit_of(p, elements[k], p.pass) : 255;
    const uint32_t same = __match_any_sync(~0U, digit);
    const uint32_t before = of_warp[warp][digit];
    __syncwarp();
    if ((same & below) == 0) of_warp[warp][digit] = before + static_cast<uint32_t>(__popc(same));
    __syncwarp();
    at[k] = before + static_cast<uint32_t>(__popc(same & below));
  }
  __syncthreads();

  // Each thread counts one digit: its elements in the warps before, in the tile and in the tiles
  // before, and the elements with smaller digits.
  uint32_t total = 0;
  for (int w = 0; w < kWarps; ++w) {
    const uint32_t here = of_warp[w][thread];
    of_warp[w][thread] = total;
    total += here;
  }
  const uint32_t padding = thread == 255 ? static_cast<uint32_t>(kRadixTile - count) : 0;
  volatile uint32_t* status = device_pointer<uint32_t>(p.status) + taken * 256 + thread;
  device_pointer<uint32_t>(p.next_status)[taken * 256 + thread] = 0;
  *status = tile == 0 ? kWhole | total : 1 + total - padding;
  starts[thread] = sum_before(total);
  const uint32_t* counts =
      device_pointer<const uint32_t>(p.counts) + (line * int64_t{sizeof(U)} + p.pass) * 256;
  const uint32_t smaller = sum_before(counts[thread]);
  uint32_t before = 0;
  for (int64_t back = 1; back <= tile; ++back) {
    uint32_t word = 0;
    while (word == 0) word = *(status - back * 256);
    before += word & kWhole ? word & ~kWhole : word - 1;
    if ((word & kWhole) != 0) break;
  }
  if (tile != 0) *status = kWhole | (before + total - padding);
  // A place in the tile plus this is the place in the line.
  places[thread] = smaller + before - starts[thread];
  __syncthreads();

  U* elements_here = reinterpret_cast<U*>(moved);
  LAMELLA_UNROLL
  for (int k = 0; k < kRadixEach; ++k) {
    const int i = (warp * kRadixEach + k) * 32 + lane;
    const int digit = i < count ? digit_of(p, elements[k], p.pass) : 255;
    at[k] += starts[digit] + of_warp[warp][digit];
    elements_here[at[k]] = elements[k];
  }
  __syncthreads();
  uint32_t to[kRadixEach];
  LAMELLA_UNROLL
  for (int k = 0; k < kRadixEach; ++k) {
    const int i = k * kRadixThreads + thread;
    const U element = elements_here[i];
    to[k] = static_cast<uint32_t>(i) + places[i < count ? digit_of(p, element, p.pass) : 255];
    if (i < count) device_pointer<U>(p.to)[line * p.length + to[k]] = element;
  }
  __syncthreads();
  uint32_t* indices_here = reinterpret_cast<uint32_t*>(moved);
  LAMELLA_UNROLL
  for (int k = 0; k < kRadixEach; ++k) {
    const int i = (warp * kRadixEach + k) * 32 + lane;
    uint32_t index = static_cast<uint32_t>(tile * kRadixTile + i);
    if (p.from_index != 0 && i < count) {
      index = device_pointer<const uint32_t>(p.from_index)[first + i];
    }
    indices_here[at[k]] = index;
  }
  __syncthreads();
  LAMELLA_UNROLL
  for (int k = 0; k < kRadixEach; ++k) {
    const int i = k * kRadixThreads + thread;
    if (i >= count) continue;
    const int64_t place = line * p.length + to[k];
    if (p.is_last != 0) {
      device_pointer<int64_t>(p.to_index)[place] = indices_here[i];
    } else {
      device_pointer<uint32_t>(p.to_index)[place] = indices_here[i];
    }
  }
}

#endif

// Rows of Note [Kernels of blocks], for the sizes of elements.
#define LAMELLA_RADIX_KERNEL(U, suffix)                                                        \
  LAMELLA_BLOCK_KERNEL(radix_counts_##suffix, kRadixThreads, RadixParameters, radix_counts<U>) \
  LAMELLA_BLOCK_KERNEL(radix_pass_##suffix, kRadixThreads, RadixParameters, radix_pass<U>)
#define LAMELLA_RADIX_KERNELS        \
  LAMELLA_RADIX_KERNEL(uint8_t, b1)  \
  LAMELLA_RADIX_KERNEL(uint16_t, b2) \
  LAMELLA_RADIX_KERNEL(uint32_t, b4) LAMELLA_RADIX_KERNEL(uint64_t, b8)

}  // namespace lamella::cuda
