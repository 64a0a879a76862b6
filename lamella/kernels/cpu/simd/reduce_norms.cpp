// Norms and variances.
//
// Note [Sums in the narrower type]
//   The sum of a norm's powers is kept in float64, in which squares of float32 cannot overflow. The
//   elements of one step are summed in float32 first, where vectors hold twice as many, and again
//   in float64 if that sum lies outside the range in which it is accurate.
#include <cmath>

#include "lamella/kernels/cpu/simd/power.h"
#include "lamella/kernels/cpu/simd/reduce_fold.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class X>
inline X magnitude(X x) {
  return x < 0 ? -x : x;
}
// |x|^power for a small whole power.
template <int power, class X>
inline X whole_power(X x) {
  if constexpr (power == 1) {
    return magnitude(x) + X{};  // not -0
  } else if constexpr (power == 2) {
    return x * x;
  } else {
    static_assert(power == 3);
    return magnitude(x) * (x * x);
  }
}
template <class L, int power>
struct PowerSum {
  using Lane = L;
  static constexpr L kIdentity = 0;
  template <class X>
  static X lift(X x) {
    return whole_power<power>(x);
  }
  template <class X>
  static X join(X a, X b) {
    return a + b;
  }
};
// True if no significant term of a float32 sum underflowed and none overflowed.
inline bool is_safe(float sum) { return sum > 1e-25f && sum < 1e37f; }

template <class T, int power, class In>
void along_power(void* acc, const ReduceInput& in) {
  auto* a = static_cast<double*>(acc);
  each_line<In>(in, [&](int64_t j, const In* x) {
    if constexpr (std::is_same_v<T, float>) {
      float sum = fold<PowerSum<float, power>>(x, in.n);
      if (is_safe(sum)) {
        a[j] += static_cast<double>(sum);
        return;
      }
    }
    if constexpr (std::is_same_v<In, Half> || std::is_same_v<In, BFloat16>) {
      for (int64_t i = 0; i < in.n; ++i) a[j] += whole_power<power>(static_cast<double>(x[i]));
    } else {
      a[j] += fold<PowerSum<double, power>>(x, in.n);
    }
  });
}
template <class T, int power>
void finish_power(const void* acc, void* out, int64_t n, const void*) {
  auto* a = static_cast<const double*>(acc);
  auto* to = static_cast<T*>(out);
  for (int64_t j = 0; j < n; ++j) {
    to[j] = static_cast<T>(power == 1 ? a[j] : power == 2 ? __builtin_sqrt(a[j]) : std::cbrt(a[j]));
  }
}
template <int power>
constexpr ReduceTable power_table(const char* name) {
  using Op = PowerSum<double, power>;
  ReduceTable table{};
  table.name = name;
  table.loops[slot_of<float>()] = {sizeof(double),
                                   &init_lanes<Op>,
                                   &along_power<float, power, float>,
                                   &across_lanes<Op, float>,
                                   &merge_lanes<Op>,
                                   &finish_power<float, power>,
                                   nullptr,
                                   kFloat};
  table.loops[slot_of<double>()] = {sizeof(double),
                                    &init_lanes<Op>,
                                    &along_power<double, power, double>,
                                    &across_lanes<Op, double>,
                                    &merge_lanes<Op>,
                                    &finish_power<double, power>,
                                    nullptr,
                                    kDouble};
  table.sources[slot_of<BFloat16>()] = {kFloat, &along_power<float, power, BFloat16>, nullptr};
  if constexpr (kReadsHalf) {
    table.sources[slot_of<Half>()] = {kFloat, &along_power<float, power, Half>, nullptr};
  }
  return table;
}
LAMELLA_REGISTER_REDUCE(norm1, power_table<1>("norm1"));
LAMELLA_REGISTER_REDUCE(norm2, power_table<2>("norm2"));
LAMELLA_REGISTER_REDUCE(norm3, power_table<3>("norm3"));

// ---- Other norms ----

// Counts the elements that are not 0.
struct Norm0 : Sum<double> {
  template <class X>
  static X lift(X x) {
    return x == 0 ? X{} : X{} + 1;
  }
};
template <class L, bool kLargest>
struct SizeExtreme : Extreme<L, kLargest> {
  static constexpr L kIdentity = kLargest ? L(0) : std::numeric_limits<L>::infinity();
  template <class X>
  static X lift(X x) {
    return magnitude(x) + X{};  // not -0
  }
};
template <class OfFloat, class OfDouble>
constexpr ReduceTable norm_table(const char* name) {
  ReduceTable table{};
  table.name = name;
  table.loops[slot_of<float>()] = lane_loops<OfFloat, float>();
  table.loops[slot_of<double>()] = lane_loops<OfDouble, double>();
  return table;
}
LAMELLA_REGISTER_REDUCE(norm0, (norm_table<Norm0, Norm0>("norm0")));
LAMELLA_REGISTER_REDUCE(
    norm_max, (norm_table<SizeExtreme<float, true>, SizeExtreme<double, true>>("norm_max")));
LAMELLA_REGISTER_REDUCE(
    norm_min, (norm_table<SizeExtreme<float, false>, SizeExtreme<double, false>>("norm_min")));

// |x|^order in vectors, in float32 where that is accurate, else in float64.
inline Wide power_of_size(VecF x, double order) {
  VecF size = v_abs(x), power = v_pow(size, VecF{} + static_cast<float>(order));
  auto lost = ~((power > 1e-30f) & (power < kInf<float>)) & (size > 0) & (size < kInf<float>);
  if (LAMELLA_LIKELY(static_cast<double>(static_cast<float>(order)) == order && !v_any(lost))) {
    return v_widen(power);
  }
  Wide wide = v_widen(size);
  return {v_pow(wide.low, VecD{} + order), v_pow(wide.high, VecD{} + order)};
}
inline VecD power_of_size(VecD x, double order) { return v_pow(v_abs(x), VecD{} + order); }
template <class T>
void along_general(void* acc, const ReduceInput& in) {
  using V = Vec<T>;
  constexpr int64_t kLanes = kLanesOf<V>;
  auto* a = static_cast<double*>(acc);
  const auto order = param<double>(in.params, 0);
  each_line<T>(in, [&](int64_t j, const T* x) {
    double sums[kLanes] = {};
    auto add = [&](V v) {
      auto power = power_of_size(v, order);
      double powers[kLanes];
      std::memcpy(powers, &power, sizeof(power));
      for (int64_t k = 0; k < kLanes; ++k) sums[k] += powers[k];
    };
    int64_t i = 0;
    for (; i + kLanes <= in.n; i += kLanes) add(v_load<T>(x + i));
    if (i < in.n) {
      // The padding of the last vector has the power 0.
      V rest = V{} + (order < 0 ? kInf<T> : T(0));
      std::memcpy(&rest, x + i, static_cast<size_t>(in.n - i) * sizeof(T));
      add(rest);
    }
    for (int64_t w = kLanes / 2; w > 0; w /= 2) {
      for (int64_t k = 0; k < w; ++k) sums[k] += sums[k + w];
    }
    a[j] += sums[0];
  });
}
template <class T>
void across_general(void* acc, const ReduceInput& in) {
  constexpr int64_t kLanes = kLanesOf<Vec<T>>;
  auto* a = static_cast<double*>(acc);
  const auto order = param<double>(in.params, 0);
  for (int64_t r = 0; r < in.count; ++r) {
    auto* x = reinterpret_cast<const T*>(static_cast<const char*>(in.data) + r * in.stride);
    for (int64_t j = 0; j < in.n; j += kLanes) {
      int64_t n = in.n - j < kLanes ? in.n - j : kLanes;
      T part[kLanes] = {};
      std::memcpy(part, x + j, static_cast<size_t>(n) * sizeof(T));
      auto power = power_of_size(v_load<T>(part), order);
      double sums[kLanes];
      std::memcpy(sums, &power, sizeof(power));
      for (int64_t k = 0; k < n; ++k) a[j + k] += sums[k];
    }
  }
}
template <class T>
void finish_general(const void* acc, void* out, int64_t n, const void* params) {
  auto* a = static_cast<const double*>(acc);
  auto* to = static_cast<T*>(out);
  const auto order = param<double>(params, 0);
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(std::pow(a[j], 1 / order));
}
template <class T>
constexpr ReduceLoops general_loops() {
  return {sizeof(double),
          &init_lanes<Sum<double>>,
          &along_general<T>,
          &across_general<T>,
          &merge_lanes<Sum<double>>,
          &finish_general<T>,
          nullptr,
          CppTypeToScalarType<T>::value};
}
constexpr ReduceTable general_table() {
  ReduceTable table{};
  table.name = "norm_general";
  table.loops[slot_of<float>()] = general_loops<float>();
  table.loops[slot_of<double>()] = general_loops<double>();
  return table;
}
// The parameter is the order of the norm.
LAMELLA_REGISTER_REDUCE(norm_general, general_table());

// ---- Variances ----

// A block's accumulators: the numbers of elements, then their means, then the sums of squared
// distances from the mean (T. Chan, G. Golub, R. LeVeque, Updating formulae and a pairwise
// algorithm for computing sample variances, 1979).
struct Moments {
  double *count, *mean, *squares;
  Moments(void* acc, int64_t n)
      : count(static_cast<double*>(acc)), mean(count + n), squares(mean + n) {}
  // Adds n elements with these moments to accumulator j.
  void add(int64_t j, double n, double other_mean, double other_squares) {
    double total = count[j] + n;
    double part = total > 0 ? n / total : 0;
    double distance = other_mean - mean[j];
    squares[j] = squares[j] + other_squares + distance * distance * count[j] * part;
    mean[j] = mean[j] + distance * part;
    count[j] = total;
  }
};
void init_moments(void* acc, int64_t n) { std::memset(acc, 0, static_cast<size_t>(n) * 24); }
void merge_moments(void* acc, const void* other, int64_t n) {
  Moments a(acc, n), b(const_cast<void*>(other), n);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) a.add(j, b.count[j], b.mean[j], b.squares[j]);
}
// Moments of lines, by two passes over pieces that fit the first-level cache.
template <class T, class In>
void along_moments(void* acc, const ReduceInput& in) {
  Moments a(acc, in.count);
  constexpr int64_t kStep = 2048, kWide = 32;
  each_line<In>(in, [&](int64_t j, const In* x) {
    for (int64_t i = 0; i < in.n; i += kStep) {
      int64_t m = in.n - i < kStep ? in.n - i : kStep;
      double sum[kWide] = {}, squares[kWide] = {};
      int64_t whole = m / kWide * kWide;
      auto at = [&](int64_t k) { return static_cast<double>(x[i + k]); };
      for (int64_t k = 0; k < whole; k += kWide) {
        for (int64_t l = 0; l < kWide; ++l) sum[l] += at(k + l);
      }
      for (int64_t k = whole; k < m; ++k) sum[k - whole] += at(k);
      for (int64_t w = kWide / 2; w > 0; w /= 2) {
        for (int64_t l = 0; l < w; ++l) sum[l] += sum[l + w];
      }
      double mean = sum[0] / static_cast<double>(m);
      for (int64_t k = 0; k < whole; k += kWide) {
        for (int64_t l = 0; l < kWide; ++l) {
          double d = at(k + l) - mean;
          squares[l] += d * d;
        }
      }
      for (int64_t k = whole; k < m; ++k) {
        double d = at(k) - mean;
        squares[k - whole] += d * d;
      }
      for (int64_t w = kWide / 2; w > 0; w /= 2) {
        for (int64_t l = 0; l < w; ++l) squares[l] += squares[l + w];
      }
      a.add(j, static_cast<double>(m), mean, squares[0]);
    }
  });
}
template <class T>
void across_moments(void* acc, const ReduceInput& in) {
  Moments a(acc, in.n);
  constexpr int64_t kWide = 128;
  auto count = static_cast<double>(in.count);
  for (int64_t j = 0; j < in.n; j += kWide) {
    int64_t n = in.n - j < kWide ? in.n - j : kWide;
    double mean[kWide] = {}, squares[kWide] = {};
    auto row = [&](int64_t r) {
      return reinterpret_cast<const T*>(static_cast<const char*>(in.data) + r * in.stride) + j;
    };
    for (int64_t r = 0; r < in.count; ++r) {
      const T* x = row(r);
      for (int64_t k = 0; k < n; ++k) mean[k] += static_cast<double>(x[k]);
    }
    for (int64_t k = 0; k < n; ++k) mean[k] /= count;
    for (int64_t r = 0; r < in.count; ++r) {
      const T* x = row(r);
      for (int64_t k = 0; k < n; ++k) {
        double d = static_cast<double>(x[k]) - mean[k];
        squares[k] += d * d;
      }
    }
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) a.add(j + k, count, mean[k], squares[k]);
  }
}
// The parameters are the correction of the number of elements, and whether to take the root.
template <class T>
void finish_moments(const void* acc, void* out, int64_t n, const void* params) {
  Moments a(const_cast<void*>(acc), n);
  auto* to = static_cast<T*>(out);
  auto correction = param<double>(params, 0), root = param<double>(params, 1);
  for (int64_t j = 0; j < n; ++j) {
    double divisor = a.count[j] - correction;
    double var = a.squares[j] / (divisor > 0 ? divisor : 0);
    to[j] = static_cast<T>(root != 0 ? __builtin_sqrt(var) : var);
  }
}
template <class T>
constexpr ReduceLoops moment_loops() {
  return {24,
          &init_moments,
          &along_moments<T, T>,
          &across_moments<T>,
          &merge_moments,
          &finish_moments<T>,
          nullptr,
          CppTypeToScalarType<T>::value};
}
constexpr ReduceTable var_table() {
  ReduceTable table{};
  table.name = "var";
  table.loops[slot_of<float>()] = moment_loops<float>();
  table.loops[slot_of<double>()] = moment_loops<double>();
  return table;
}
LAMELLA_REGISTER_REDUCE(var, var_table());

}  // namespace
}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
