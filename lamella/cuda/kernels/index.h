// Elements at places that index tensors give: read, written, combined with what is there.
#pragma once
#include "lamella/cuda/kernels/walk.h"

namespace lamella::cuda {

// Operand 0 is what lies dense or strided beside the indices (the result of a gather, the values of
// a scatter), operand 1 the memory that is indexed, the others the `count` index tensors.
template <int K>
struct IndexParameters {
  Walk<2 + K> walk;
  IndexAxis axes[K];
  int32_t count;
  Combine how;
  uint64_t any;
};
inline constexpr int kMostIndices = 6;

// Calls f(beside, place, inside) for a thread's elements: the element of operand 0, the offset of
// the indexed one in operand 1, and whether all indices are in range.
template <int K, class F>
LAMELLA_DEVICE void each_place(const IndexParameters<K>& p, int64_t thread, int64_t threads,
                               const F& f) {
  for (int64_t i = thread; i < p.walk.numel; i += threads) {
    int64_t offsets[2 + K] = {};
    offsets_of(p.walk, i, offsets, K == 1 ? 3 : 2 + p.count);
    int64_t place = offsets[1];
    bool inside = true;
    for (int k = 0; k < K && (K == 1 || k < p.count); ++k) {
      const char* from = memory_at(p.walk.data[2 + k]) + offsets[2 + k];
      inside = add_place(p.axes[k], p.any, from, &place) && inside;
    }
    f(device_pointer<char>(p.walk.data[0]) + offsets[0], place, inside);
  }
}

template <class T, int K>
LAMELLA_DEVICE void gather(const IndexParameters<K>& p, int64_t thread, int64_t threads) {
  each_place(p, thread, threads, [&](char* beside, int64_t place, bool inside) {
    T value{};
    if (inside) value = *reinterpret_cast<const T*>(memory_at(p.walk.data[1]) + place);
    *reinterpret_cast<T*>(beside) = value;
  });
}
template <class T, int K>
LAMELLA_DEVICE void scatter(const IndexParameters<K>& p, int64_t thread, int64_t threads) {
  each_place(p, thread, threads, [&](const char* beside, int64_t place, bool inside) {
    if (!inside) return;
    *reinterpret_cast<T*>(device_pointer<char>(p.walk.data[1]) + place) =
        *reinterpret_cast<const T*>(beside);
  });
}
template <class T, int K>
LAMELLA_DEVICE void combine(const IndexParameters<K>& p, int64_t thread, int64_t threads) {
  each_place(p, thread, threads, [&](const char* beside, int64_t place, bool inside) {
    if (!inside) return;
    const T value = *reinterpret_cast<const T*>(beside);
    combine_into<T>(device_pointer<char>(p.walk.data[1]) + place, loaded(value), p.how);
  });
}
// The byte that each place is from the start of the indexed memory, into int64 elements of operand
// 0; -1 where an index is out of range.
template <int K>
LAMELLA_DEVICE void places(const IndexParameters<K>& p, int64_t thread, int64_t threads) {
  each_place(p, thread, threads, [&](char* beside, int64_t place, bool inside) {
    *reinterpret_cast<int64_t*>(beside) = inside ? place : -1;
  });
}

// Note [Sums in order]
//   The order in which threads add is not defined, and sums of floating-point numbers depend on it.
//   Where results must not vary, places are sorted, and one thread combines all values of a place
//   in the order of the elements, as the CPU does.
struct RunsParameters {
  int64_t numel;
  uint64_t places;  // sorted, int64
  uint64_t order;   // the element that each place belongs to, int64
  uint64_t to;
  Walk<1> values;
  int32_t assigns;  // the last value is written; nothing is combined
  Combine how;
};
template <class T>
LAMELLA_DEVICE void combine_runs(const RunsParameters& p, int64_t thread, int64_t threads) {
  const auto* sorted = device_pointer<const int64_t>(p.places);
  const auto* order = device_pointer<const int64_t>(p.order);
  for (int64_t i = thread; i < p.numel; i += threads) {
    const int64_t place = sorted[i];
    if (place < 0 || (i > 0 && sorted[i - 1] == place)) continue;
    T& to = *reinterpret_cast<T*>(device_pointer<char>(p.to) + place);
    T result = to;
    for (int64_t j = i; j < p.numel && sorted[j] == place; ++j) {
      int64_t offset;
      offsets_of(p.values, order[j], &offset);
      const T value = *reinterpret_cast<const T*>(memory_at(p.values.data[0]) + offset);
      result =
          p.assigns != 0 ? value : stored_as<T>(combined(loaded(result), loaded(value), p.how));
    }
    to = result;
  }
}

// f(kernel, Parameters, body)
#define LAMELLA_INDEX_KERNELS(f)                  \
  LAMELLA_EACH_SIZE(LAMELLA_MOVING_KERNELS, f)    \
  LAMELLA_EACH_TYPE(LAMELLA_COMBINING_KERNELS, f) \
  f(places_one, IndexParameters<1>, places<1>)    \
      f(places_many, IndexParameters<kMostIndices>, places<kMostIndices>)
#define LAMELLA_MOVING_KERNELS(f, T, suffix)                                          \
  f(gather_one_##suffix, IndexParameters<1>, gather<T, 1>)                            \
      f(gather_many_##suffix, IndexParameters<kMostIndices>, gather<T, kMostIndices>) \
          f(scatter_one_##suffix, IndexParameters<1>, scatter<T, 1>)                  \
              f(scatter_many_##suffix, IndexParameters<kMostIndices>, scatter<T, kMostIndices>)
#define LAMELLA_COMBINING_KERNELS(f, T, suffix)                                         \
  f(combine_one_##suffix, IndexParameters<1>, combine<T, 1>)                            \
      f(combine_many_##suffix, IndexParameters<kMostIndices>, combine<T, kMostIndices>) \
          f(combine_runs_##suffix, RunsParameters, combine_runs<T>)

}  // namespace lamella::cuda
