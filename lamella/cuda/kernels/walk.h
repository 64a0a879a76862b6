// Elements of strided operands, and what kernels with one thread for each element share: places of
// elements, combinations in memory, reports of indices that are out of range.
#pragma once
#include "lamella/cuda/kernels/pointwise.h"

namespace lamella::cuda {

inline constexpr int kWalkDims = 12;

// The elements of N operands of one shape, innermost dimension first; strides are in bytes.
template <int N>
struct Walk {
  int64_t numel;
  int32_t ndim;
  int32_t narrow;  // whether element numbers fit 31 bits
  int64_t sizes[kWalkDims];
  int64_t strides[N][kWalkDims];
  uint64_t data[N];
};

// The offsets of element `i` in the first `count` operands.
template <int N>
LAMELLA_DEVICE void offsets_of(const Walk<N>& walk, int64_t i, int64_t* offsets, int count = N) {
  for (int k = 0; k < count; ++k) offsets[k] = 0;
  int64_t rest = i;
  for (int d = 0; d < walk.ndim; ++d) {
    const int64_t size = walk.sizes[d];
    int64_t next = 0;
    if (d + 1 < walk.ndim) {
      // Division of 64 bits takes a device about a hundred instructions.
      next = walk.narrow != 0 ? static_cast<uint32_t>(rest) / static_cast<uint32_t>(size)
                              : rest / size;
    }
    const int64_t at = rest - next * size;
    for (int k = 0; k < count; ++k) offsets[k] += at * walk.strides[k][d];
    rest = next;
  }
}
// Calls f(i, offsets) for a thread's elements, with their offsets in the first K operands.
template <int K, int N, class F>
LAMELLA_DEVICE void walk_elements(const Walk<N>& walk, int64_t thread, int64_t threads,
                                  const F& f) {
  for (int64_t i = thread; i < walk.numel; i += threads) {
    int64_t offsets[K];
    offsets_of(walk, i, offsets, K);
    f(i, offsets);
  }
}
template <class T, int N>
LAMELLA_DEVICE T& element(const Walk<N>& walk, int operand, const int64_t* offsets) {
  return *reinterpret_cast<T*>(device_pointer<char>(walk.data[operand]) + offsets[operand]);
}

// Elements that are only moved.
struct Pair64 {
  uint64_t first, second;
};

// ---- Reports: Note [Indices on the device] in lamella/cuda/index_reports.h ----

inline constexpr int64_t kNoReport = INT64_MIN + 1;
// Stores an index that is out of range in its launch's slot, which is memory of the host.
LAMELLA_DEVICE void report_index(uint64_t slot, uint64_t any, int64_t index) {
  if (slot == 0) return;
  // One value stands for an empty slot.
  *reinterpret_cast<volatile int64_t*>(slot) = index == kNoReport ? index - 1 : index;
#ifdef __CUDACC__
  __threadfence_system();
#endif
  *reinterpret_cast<volatile int64_t*>(any) = 1;
}

// One index tensor.
struct IndexAxis {
  int64_t size;    // of the dimension
  int64_t stride;  // bytes between its elements
  int64_t skip;    // an index that is passed over, if `skips`
  int32_t wide;    // whether indices are int64, else int32
  int32_t wraps;   // whether negative indices count from the end
  int32_t skips;
  uint64_t slot;  // of the report; 0: indices are known to be in range
};
LAMELLA_DEVICE int64_t index_at(const char* from, bool wide) {
  return wide ? *reinterpret_cast<const int64_t*>(from) : *reinterpret_cast<const int32_t*>(from);
}
// Adds the place of an index to *offset; false if it is passed over or, after a report, out of
// range.
LAMELLA_DEVICE bool add_place(const IndexAxis& axis, uint64_t any, const char* from,
                              int64_t* offset) {
  const int64_t given = index_at(from, axis.wide != 0);
  if (axis.skips != 0 && given == axis.skip) return false;
  const int64_t index = axis.wraps != 0 && given < 0 ? given + axis.size : given;
  if (index < 0 || index >= axis.size) {
    report_index(axis.slot, any, given);
    return false;
  }
  *offset += index * axis.stride;
  return true;
}

// ---- Combinations ----

enum Combine : int32_t { kCombineAdd, kCombineMultiply, kCombineMaximum, kCombineMinimum };

// The type of values of elements.
template <class T>
using computed_as =
    std::conditional_t<std::is_same_v<T, StoredHalf> || std::is_same_v<T, StoredBFloat16>, float,
                       T>;
template <class T>
LAMELLA_DEVICE computed_as<T> loaded(T value) {
  return converted<computed_as<T>>(value);
}
// Whether a comes before b in ascending order, in which NaN comes last.
template <class T>
LAMELLA_DEVICE bool is_before(T a, T b) {
  return a < b || (b != b && a == a);
}

template <class T>
LAMELLA_DEVICE T combined(T a, T b, Combine how) {
  const bool is_nan = a != a;  // NOLINT(misc-redundant-expression)
  if (how == kCombineMaximum) return is_nan || a > b ? a : b;
  if (how == kCombineMinimum) return is_nan || a < b ? a : b;
  if constexpr (std::is_same_v<T, bool>) {
    return how == kCombineMultiply ? a && b : a || b;
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // integers wrap
    return static_cast<T>(how == kCombineMultiply ? x * y : x + y);
  } else {
    return how == kCombineMultiply ? a * b : a + b;
  }
}

// *to = combined(*to, value) as one step.
template <class T>
LAMELLA_DEVICE void combine_into(char* to, computed_as<T> value, Combine how) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (how == kCombineAdd) {
      atomicAdd(reinterpret_cast<T*>(to), value);
      return;
    }
  }
  // The word that the element lies in.
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  using Bits = std::conditional_t<sizeof(T) >= 4, Word,
                                  std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>;
  const auto address = reinterpret_cast<uint64_t>(to);
  auto* word = reinterpret_cast<Word*>(address & ~uint64_t{sizeof(Word) - 1});
  const unsigned shift = sizeof(T) >= 4 ? 0 : (address & 3) * 8;
  constexpr Word kMask = static_cast<Bits>(~Bits{0});
  Word seen = *word;
  while (true) {
    const T now = __builtin_bit_cast(T, static_cast<Bits>(seen >> shift & kMask));
    const T next = stored_as<T>(combined(loaded(now), value, how));
    const Word bits = __builtin_bit_cast(Bits, next);
    const Word before = atomicCAS(word, seen, (seen & ~(kMask << shift)) | (bits << shift));
    if (before == seen) return;
    seen = before;
  }
#else
  T& place = *reinterpret_cast<T*>(to);
  place = stored_as<T>(combined(loaded(place), value, how));
#endif
}

// f(name, T, suffix) for the types that are computed with.
#define LAMELLA_EACH_TYPE(f, name)                                                         \
  f(name, bool, b8) f(name, uint8_t, u8) f(name, int8_t, i8) f(name, int16_t, i16)         \
      f(name, int32_t, i32) f(name, int64_t, i64) f(name, float, f32) f(name, double, f64) \
          f(name, StoredHalf, f16) f(name, StoredBFloat16, bf16)
#define LAMELLA_EACH_FLOAT(f, name) \
  f(name, float, f32) f(name, double, f64) f(name, StoredHalf, f16) f(name, StoredBFloat16, bf16)
// f(name, T, suffix) for the sizes of elements.
#define LAMELLA_EACH_SIZE(f, name)                                                       \
  f(name, uint8_t, b1) f(name, uint16_t, b2) f(name, uint32_t, b4) f(name, uint64_t, b8) \
      f(name, Pair64, b16)

}  // namespace lamella::cuda
