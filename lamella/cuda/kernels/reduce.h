// Kernels of reductions.
//
// Note [Passes of a reduction]
//   A team folds a line into an accumulator and combines it: Note [Teams] in team.h. Where there
//   are fewer lines than the device has room for, the grid's y cuts each into parts, whose
//   accumulators go to memory, and a second launch of the same kernel merges them in order. So the
//   result depends on sizes and strides alone.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/team.h"

namespace lamella::cuda {

struct ReduceParameters {
  int64_t outputs, length, part;  // `part`: elements of a line that a block folds
  LineDims kept, reduced;
  int64_t kept_in[kLineDims], kept_out[kLineDims], kept_values[kLineDims];  // strides in bytes
  int64_t reduced_in[kLineDims];
  uint64_t in, out, values, partial;  // `values`: 0 without; `partial`: 0 in one pass
  Kind in_kind, out_kind, values_kind;
  int32_t across, merges;  // `merges`: the input are the accumulators of parts
  int32_t mode;            // of the kernel
  int32_t pack;            // elements in 16 bytes, if lines are contiguous and aligned; else 1
  double numbers[2];
};

#ifdef LAMELLA_KERNEL_BODIES

template <class T>
LAMELLA_DEVICE bool is_nan(T x) {
  return x != x;
}
template <class T>
LAMELLA_DEVICE T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T>
LAMELLA_DEVICE T wrap_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// An operation has an accumulator, and folds elements with their positions into it. `mode` and
// `numbers` are in the parameters. fold_run(acc, x, p) folds several elements at once.

// Mode 0: sum; 1: NaN counts as 0; 2: mean of numbers[0] elements.
template <class T>
struct SumOf {
  using Acc = T;
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters&) { return T(0); }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t, const ReduceParameters& p) {
    if constexpr (!std::is_integral_v<T>) {
      if (p.mode == 1 && is_nan(x)) x = T(0);
    }
    a = wrap_add(a, x);
  }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters&) {
    a = wrap_add(a, b);
  }
  static LAMELLA_DEVICE T result(const Acc& a, const ReduceParameters& p) {
    return p.mode == 2 ? a / static_cast<T>(p.numbers[0]) : a;
  }
};
template <class T>
struct ProductOf {
  using Acc = T;
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters&) { return T(1); }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t, const ReduceParameters&) {
    a = wrap_mul(a, x);
  }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters&) {
    a = wrap_mul(a, b);
  }
  static LAMELLA_DEVICE T result(const Acc& a, const ReduceParameters&) { return a; }
};

// Mode 0: the smallest and the largest as values; 1: the largest, 2: the smallest. NaN is either.
template <class T>
struct ExtremesOf {
  struct Acc {
    T least, most;
  };
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters&) {
    if constexpr (std::is_integral_v<T>) {
      return {INT64_MAX, INT64_MIN};
    } else {
      return {static_cast<T>(INFINITY), static_cast<T>(-INFINITY)};
    }
  }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters& p) {
    if (p.mode != 1) a.least = b.least < a.least || is_nan(b.least) ? b.least : a.least;
    if (p.mode != 2) a.most = b.most > a.most || is_nan(b.most) ? b.most : a.most;
  }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t, const ReduceParameters& p) {
    merge(a, {x, x}, p);
  }
  static LAMELLA_DEVICE T result(const Acc& a, const ReduceParameters& p) {
    return p.mode == 1 ? a.most : a.least;
  }
  static LAMELLA_DEVICE T value(const Acc& a, const ReduceParameters&) { return a.most; }
};

// The position of the largest element (mode 1) or the smallest (0), and the element as value. The
// first of equal ones counts, and NaN before every number.
template <class T>
struct PlaceOf {
  struct Acc {
    T best;
    int64_t index;  // -1: no element yet
  };
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters&) { return {T(0), -1}; }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters& p) {
    if (b.index < 0) return;
    bool better = a.index < 0;
    if (!better) {
      const bool equal = a.best == b.best || (is_nan(a.best) && is_nan(b.best));
      const bool beyond = p.mode != 0 ? b.best > a.best : b.best < a.best;
      better = equal ? b.index < a.index : (beyond || is_nan(b.best)) && !is_nan(a.best);
    }
    if (better) a = b;
  }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t i, const ReduceParameters& p) {
    merge(a, {x, i}, p);
  }
  static LAMELLA_DEVICE int64_t result(const Acc& a, const ReduceParameters&) { return a.index; }
  static LAMELLA_DEVICE T value(const Acc& a, const ReduceParameters&) { return a.best; }
};

// Mode 0: how many elements are not 0; 1: whether any is not; 2: whether none is 0.
template <class T>
struct CountOf {
  using Acc = int64_t;
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters&) { return 0; }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t, const ReduceParameters&) {
    a += x != 0 ? 1 : 0;
  }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters&) { a += b; }
  static LAMELLA_DEVICE int64_t result(const Acc& a, const ReduceParameters& p) {
    return p.mode == 0 ? a : p.mode == 1 ? a != 0 : a == p.length;
  }
};

// Norms of order 0 to 3 by mode, 4: of order numbers[0], 5: the largest size, 6: the smallest.
template <class T>
struct NormOf {
  using Acc = double;  // in which squares of float32 cannot overflow
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters& p) {
    return p.mode == 6 ? static_cast<double>(INFINITY) : 0;
  }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t, const ReduceParameters& p) {
    const double size = x < 0 ? -static_cast<double>(x) : static_cast<double>(x) + 0.0;
    switch (p.mode) {
      case 0:
        a += x != 0 ? 1 : 0;
        break;
      case 2:
        a += size * size;
        break;
      case 3:
        a += size * size * size;
        break;
      case 4:
        a += std::pow(size, p.numbers[0]);
        break;
      default:
        merge(a, size, p);
        break;
    }
  }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters& p) {
    if (p.mode < 5) {
      a += b;
    } else {
      a = (p.mode == 5 ? b > a : b < a) || is_nan(b) ? b : a;
    }
  }
  static LAMELLA_DEVICE T result(const Acc& a, const ReduceParameters& p) {
    switch (p.mode) {
      case 2:
        return static_cast<T>(std::sqrt(a));
      case 3:
        return static_cast<T>(std::cbrt(a));
      case 4:
        return static_cast<T>(std::pow(a, 1 / p.numbers[0]));
      default:
        return static_cast<T>(a);
    }
  }
};

// The variance with the correction numbers[0], or its root if numbers[1] is not 0; the mean as
// value. T. Chan, G. Golub, R. LeVeque, Updating formulae and a pairwise algorithm for computing
// sample variances, 1979.
template <class T>
struct VarianceOf {
  struct Acc {
    double count, mean, squares;
  };
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters&) { return {0, 0, 0}; }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters&) {
    const double total = a.count + b.count;
    const double part = total > 0 ? b.count / total : 0, apart = b.mean - a.mean;
    a.squares += b.squares + apart * apart * a.count * part;
    a.mean += apart * part;
    a.count = total;
  }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t, const ReduceParameters& p) {
    merge(a, {1, static_cast<double>(x), 0}, p);
  }
  template <int N>
  static LAMELLA_DEVICE void fold_run(Acc& a, const T (&x)[N], const ReduceParameters& p) {
    Acc run{N, 0, 0};
    for (int k = 0; k < N; ++k) run.mean += static_cast<double>(x[k]);
    run.mean /= N;
    for (int k = 0; k < N; ++k) {
      const double apart = static_cast<double>(x[k]) - run.mean;
      run.squares += apart * apart;
    }
    merge(a, run, p);
  }
  static LAMELLA_DEVICE T result(const Acc& a, const ReduceParameters& p) {
    const double divisor = a.count - p.numbers[0];
    const double variance = a.squares / (divisor > 0 ? divisor : 0);
    return static_cast<T>(p.numbers[1] != 0 ? std::sqrt(variance) : variance);
  }
  static LAMELLA_DEVICE T value(const Acc& a, const ReduceParameters&) {
    return static_cast<T>(a.mean);
  }
};

// log(sum(exp(x))) with the largest element taken out of the sum, unless that is infinite.
template <class T>
struct ExpSum {
  T most, sum;
  static LAMELLA_DEVICE ExpSum identity() { return {static_cast<T>(-INFINITY), 0}; }
  static LAMELLA_DEVICE T taken_out(T most) { return most - most == 0 ? most : T(0); }
  LAMELLA_DEVICE void add(const ExpSum& b) {
    const T largest = b.most > most ? b.most : most, shift = taken_out(largest);
    sum = scaled(*this, shift) + scaled(b, shift);
    most = largest;
  }
  template <int N>
  LAMELLA_DEVICE void add(const T (&x)[N]) {
    T largest = most;
    for (T value : x) largest = value > largest ? value : largest;
    const T shift = taken_out(largest);
    sum = scaled(*this, shift);
    for (T value : x) sum += std::exp(value - shift);
    most = largest;
  }
  LAMELLA_DEVICE void add(T x) {
    if (x > most) {
      const T shift = taken_out(x);
      sum = scaled(*this, shift) + std::exp(x - shift);
      most = x;
    } else {
      sum += std::exp(x - taken_out(most));
    }
  }

 private:
  static LAMELLA_DEVICE T scaled(const ExpSum& a, T shift) {
    const T own = taken_out(a.most);
    return own == shift || a.sum == 0 ? a.sum : a.sum * std::exp(own - shift);
  }
};
template <class T>
struct LogSumExpOf {
  using Acc = ExpSum<T>;
  using Element = T;
  static LAMELLA_DEVICE Acc identity(const ReduceParameters&) { return Acc::identity(); }
  static LAMELLA_DEVICE void fold(Acc& a, T x, int64_t, const ReduceParameters&) { a.add(x); }
  template <int N>
  static LAMELLA_DEVICE void fold_run(Acc& a, const T (&x)[N], const ReduceParameters&) {
    a.add(x);
  }
  static LAMELLA_DEVICE void merge(Acc& a, const Acc& b, const ReduceParameters&) { a.add(b); }
  static LAMELLA_DEVICE T result(const Acc& a, const ReduceParameters&) {
    return Acc::taken_out(a.most) + std::log(a.sum);
  }
};

// Folds elements that are `step` apart.
template <class Op, int N>
LAMELLA_DEVICE void fold_several(typename Op::Acc (&acc)[4], const typename Op::Element (&x)[N],
                                 int64_t first, int64_t step, const ReduceParameters& p) {
  if constexpr (requires { Op::fold_run(acc[0], x, p); }) {
    Op::fold_run(acc[0], x, p);
  } else {
    for (int k = 0; k < N; ++k) Op::fold(acc[k % 4], x[k], first + k * step, p);
  }
}

// Folds the elements [begin, end) of a line that this thread has. Four accumulators hide the time
// of one operation.
template <class Op>
LAMELLA_DEVICE typename Op::Acc fold_line(const ReduceParameters& p, const Team& team,
                                          const char* line, int64_t begin, int64_t end) {
  using Acc = typename Op::Acc;
  using T = typename Op::Element;
  constexpr int kRun = 4;
  Acc acc[kRun];
  for (auto& a : acc) a = Op::identity(p);
  const int64_t step = team.lanes;
  if constexpr (std::is_same_v<T, float>) {
    with_pack<T>(p.pack, [&](auto constant) {
      constexpr int N = constant;
      if constexpr (N != 1) {
        const Elements<T> elements(line, p.in_kind);
        const int64_t whole = begin + (end - begin) / N * N;
        LAMELLA_UNROLL_4
        for (int64_t i = begin + team.lane * N; i < whole; i += step * N) {
          T x[N];
          elements.load(i, x);
          fold_several<Op>(acc, x, i, 1, p);
        }
        begin = whole;
      }
    });
  }
  int64_t i = begin + team.lane;
  if (p.reduced.count == 1) {
    const int64_t stride = p.reduced_in[0];
    for (; i + (kRun - 1) * step < end; i += kRun * step) {
      T x[kRun];
      for (int k = 0; k < kRun; ++k) x[k] = read<T>(line + (i + k * step) * stride, p.in_kind);
      fold_several<Op>(acc, x, i, step, p);
    }
  }
  for (; i < end; i += step) {
    Op::fold(acc[0], read<T>(line + offset_of(p.reduced, p.reduced_in, i), p.in_kind), i, p);
  }
  for (int k = 1; k < kRun; ++k) Op::merge(acc[0], acc[k], p);
  return acc[0];
}

template <class Op>
LAMELLA_DEVICE void reduce_lines(const ReduceParameters& p) {
  using Acc = typename Op::Acc;
  const Team team(p.across != 0);
  team.each_line(p.outputs, [&](int64_t output) {
    const bool there = output < p.outputs;
    Acc acc = Op::identity(p);
    if (there && p.merges != 0) {
      auto* parts = device_pointer<const Acc>(p.partial);
      for (int64_t i = team.lane; i < p.part; i += team.lanes) {
        Op::merge(acc, parts[i * p.outputs + output], p);
      }
    } else if (there) {
      const int64_t begin = int64_t{blockIdx.y} * p.part;
      const int64_t end = begin + p.part < p.length ? begin + p.part : p.length;
      const char* line = memory_at(p.in) + offset_of(p.kept, p.kept_in, output);
      acc = fold_line<Op>(p, team, line, begin, end);
    }
    team.combine(acc, [&](Acc& a, const Acc& b) { Op::merge(a, b, p); });
    if (!there || team.lane != 0) return;
    if (p.merges == 0 && p.partial != 0) {
      device_pointer<Acc>(p.partial)[int64_t{blockIdx.y} * p.outputs + output] = acc;
      return;
    }
    write_as(device_pointer<char>(p.out) + offset_of(p.kept, p.kept_out, output), p.out_kind,
             Op::result(acc, p));
    if constexpr (requires { Op::value(acc, p); }) {
      if (p.values == 0) return;
      write_as(device_pointer<char>(p.values) + offset_of(p.kept, p.kept_values, output),
               p.values_kind, Op::value(acc, p));
    }
  });
}

#endif

#define LAMELLA_REDUCE_NUMBERS(f, name, Op)                              \
  f(name##_f32, kTeamThreads, ReduceParameters, reduce_lines<Op<float>>) \
      f(name##_f64, kTeamThreads, ReduceParameters, reduce_lines<Op<double>>)
#define LAMELLA_REDUCE_ALL(f, name, Op) \
  LAMELLA_REDUCE_NUMBERS(f, name, Op)   \
  f(name##_i64, kTeamThreads, ReduceParameters, reduce_lines<Op<int64_t>>)
#define LAMELLA_REDUCE_KERNELS(f)                    \
  LAMELLA_REDUCE_ALL(f, reduce_sum, SumOf)           \
  LAMELLA_REDUCE_ALL(f, reduce_prod, ProductOf)      \
  LAMELLA_REDUCE_ALL(f, reduce_extremes, ExtremesOf) \
  LAMELLA_REDUCE_ALL(f, reduce_place, PlaceOf)       \
  LAMELLA_REDUCE_ALL(f, reduce_count, CountOf)       \
  LAMELLA_REDUCE_NUMBERS(f, reduce_norm, NormOf)     \
  LAMELLA_REDUCE_NUMBERS(f, reduce_var, VarianceOf)  \
  LAMELLA_REDUCE_NUMBERS(f, reduce_logsumexp, LogSumExpOf)

}  // namespace lamella::cuda
