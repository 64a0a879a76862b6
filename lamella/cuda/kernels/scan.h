// Kernels of scans: running sums, products, logarithms of sums of exponentials, and extremes with
// their places.
//
// Note [Scans of rows and of columns]
//   For rows a block scans a line in tiles: each thread scans a few neighbours, the threads' totals
//   are scanned by warp shuffles, and the total of a tile is carried to the next one. For columns,
//   and where there are lines enough, a thread scans a line.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/reduce.h"

namespace lamella::cuda {

inline constexpr int kScanThreads = 256;

enum ScanMode : int32_t { kScanSum, kScanProduct, kScanLogSumExp };

struct ScanParameters {
  int64_t lines, length, in_step, out_step, index_step;  // steps in bytes
  LineDims dims;
  int64_t in_strides[kLineDims], out_strides[kLineDims], index_strides[kLineDims];
  uint64_t in, out, indices;
  Kind in_kind, out_kind;
  int32_t by_thread;  // a thread has a line
  int32_t mode;       // a ScanMode; whether the largest is searched
};

#ifdef LAMELLA_KERNEL_BODIES

// Sums in float64 or int64.
template <class T>
struct RunningOf {
  using Acc = T;
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ScanParameters& p) {
    return p.mode == kScanProduct ? T(1) : p.mode == kScanSum ? T(0) : static_cast<T>(-INFINITY);
  }
  static LAMELLA_DEVICE Acc of(T x, int64_t) { return x; }
  static LAMELLA_DEVICE Acc join(const Acc& a, const Acc& b, const ScanParameters& p) {
    if constexpr (std::is_integral_v<T>) {
      return p.mode == kScanProduct ? wrap_mul(a, b) : wrap_add(a, b);
    } else {
      if (p.mode == kScanSum) return a + b;
      if (p.mode == kScanProduct) return a * b;
      const T most = b > a || is_nan(b) ? b : a, least = b > a || is_nan(b) ? a : b;
      // Equal infinities, and NaN.
      if (!(most - least < static_cast<T>(INFINITY))) return is_nan(least) ? least : most;
      return most + std::log1p(std::exp(least - most));
    }
  }
  static LAMELLA_DEVICE void store(const ScanParameters& p, char* out, char*, const Acc& a) {
    write_as(out, p.out_kind, a);
  }
};
// Of equal elements the last one counts, and NaN is taken before every number.
template <class T>
struct ExtremeOf {
  struct Acc {
    T best;
    int64_t index;  // -1: no element yet
  };
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ScanParameters&) { return {T(0), -1}; }
  static LAMELLA_DEVICE Acc of(T x, int64_t i) { return {x, i}; }
  static LAMELLA_DEVICE Acc join(const Acc& a, const Acc& b, const ScanParameters& p) {
    if (b.index < 0) return a;
    if (a.index < 0 || is_nan(b.best)) return b;
    if (is_nan(a.best)) return a;
    return (p.mode != 0 ? b.best >= a.best : b.best <= a.best) ? b : a;
  }
  static LAMELLA_DEVICE void store(const ScanParameters& p, char* out, char* index, const Acc& a) {
    write_as(out, p.out_kind, a.best);
    *reinterpret_cast<int64_t*>(index) = a.index;
  }
};

template <class Op>
LAMELLA_DEVICE void scan_lines(const ScanParameters& p) {
  using Acc = typename Op::Acc;
  using T = typename Op::Element;
  auto place = [&](int64_t line, const char** in, char** out, char** index) {
    *in = memory_at(p.in) + offset_of(p.dims, p.in_strides, line);
    *out = device_pointer<char>(p.out) + offset_of(p.dims, p.out_strides, line);
    *index = device_pointer<char>(p.indices) + offset_of(p.dims, p.index_strides, line);
  };
  const char* in;
  char *out, *index;
  if (p.by_thread != 0) {
    each_element(p.lines, [&](int64_t line) {
      place(line, &in, &out, &index);
      Acc acc = Op::identity(p);
      for (int64_t i = 0; i < p.length; ++i) {
        acc = Op::join(acc, Op::of(read<T>(in + i * p.in_step, p.in_kind), i), p);
        Op::store(p, out + i * p.out_step, index + i * p.index_step, acc);
      }
    });
    return;
  }
  constexpr int kItems = 4;
  for (int64_t line = blockIdx.x; line < p.lines; line += gridDim.x) {
    place(line, &in, &out, &index);
    Acc carry = Op::identity(p);
    for (int64_t tile = 0; tile < p.length; tile += kScanThreads * kItems) {
      const int64_t first = tile + int64_t{threadIdx.x} * kItems;
      Acc each[kItems], total = Op::identity(p);
      for (int k = 0; k < kItems; ++k) {
        const int64_t i = first + k;
        if (i < p.length) {
          total = Op::join(total, Op::of(read<T>(in + i * p.in_step, p.in_kind), i), p);
        }
        each[k] = total;
      }
      const Acc all = scan_block<kScanThreads>(
          total, Op::identity(p), [&](const Acc& a, const Acc& b) { return Op::join(a, b, p); });
      const Acc before = Op::join(carry, total, p);
      for (int k = 0; k < kItems; ++k) {
        const int64_t i = first + k;
        if (i >= p.length) break;
        Op::store(p, out + i * p.out_step, index + i * p.index_step, Op::join(before, each[k], p));
      }
      carry = Op::join(carry, all, p);
    }
  }
}

#endif

#define LAMELLA_SCAN_KERNELS(f)                                                            \
  f(scan_running_f64, kScanThreads, ScanParameters, scan_lines<RunningOf<double>>)         \
      f(scan_running_i64, kScanThreads, ScanParameters, scan_lines<RunningOf<int64_t>>)    \
          f(scan_extreme_f64, kScanThreads, ScanParameters, scan_lines<ExtremeOf<double>>) \
              f(scan_extreme_i64, kScanThreads, ScanParameters, scan_lines<ExtremeOf<int64_t>>)

}  // namespace lamella::cuda
