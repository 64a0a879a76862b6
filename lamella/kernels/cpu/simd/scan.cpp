// Running sums, products and sums in logarithms of lines and of rows.
//
// Note [Scans in vectors]
//   A granule of eight float64 or int64 is scanned in three steps: the second of each two lanes
//   adds the first, the upper half of each four adds the second lane, the upper half of all adds
//   the fourth (J. Sklansky, Conditional-sum addition logic, 1960). The preceding total is added
//   last, so that only this step waits for the previous granule. The order of sums differs from the
//   sequential one, and intermediate values may overflow: a run with a value out of bounds is
//   repeated sequentially.
#include "lamella/kernels/cpu/scan.h"

#include <cmath>
#include <complex>

#include "lamella/kernels/cpu/simd/reduce_fold.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// The accumulator type of a running fold of T.
template <class T>
struct StateOf {
  using type = double;
};
template <>
struct StateOf<int64_t> {
  using type = uint64_t;
};
template <class R>
struct StateOf<complex<R>> {
  using type = complex<double>;
};

template <Scan kind>
struct ScanOp {
  template <class X>
  static X join(X a, X b) {
    if constexpr (kind == Scan::kProduct) {
      return a * b;
    } else {
      return a + b;
    }
  }
};
// log(exp(a) + exp(b)), computed relative to the operand with the larger real part (b if both are
// equal), which decides the branch of a complex logarithm. Infinite operands are handled first.
template <>
struct ScanOp<Scan::kLogSumExp> {
  static double join(double a, double b) {
    double most = a > b ? a : b, least = a > b ? b : a;
    if (a != a || b != b) return a + b;
    return std::isinf(most) ? most : most + std::log1p(std::exp(least - most));
  }
  static complex<double> join(complex<double> a, complex<double> b) {
    std::complex<double> x(a.real(), a.imag()), y(b.real(), b.imag());
    if (x.real() <= y.real()) std::swap(x, y);
    if (std::isinf(x.real()) && x.real() < 0) return {y.real(), y.imag()};
    std::complex<double> sum = x + std::log(1.0 + std::exp(y - x));
    return {sum.real(), sum.imag()};
  }
};

template <class S, Scan kind>
void init(void* state, int64_t n) {
  auto* s = static_cast<S*>(state);
  for (int64_t j = 0; j < n; ++j) {
    s[j] = kind == Scan::kSum       ? S(0)
           : kind == Scan::kProduct ? S(1)
                                    : S(-std::numeric_limits<double>::infinity());
  }
}
template <class T, Scan kind>
void across(const void* in, void* out, int64_t n, void* state) {
  using S = typename StateOf<T>::type;
  auto* x = static_cast<const T*>(in);
  auto* y = static_cast<T*>(out);
  auto* s = static_cast<S*>(state);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    s[j] = ScanOp<kind>::join(s[j], S(x[j]));
    y[j] = static_cast<T>(s[j]);
  }
}
template <class T, Scan kind>
void along(const void* in, void* out, int64_t n, void* state) {
  using S = typename StateOf<T>::type;
  auto* x = static_cast<const T*>(in);
  auto* y = static_cast<T*>(out);
  S acc = *static_cast<S*>(state);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(acc = ScanOp<kind>::join(acc, S(x[i])));
  *static_cast<S*>(state) = acc;
}

// ---- In vectors ----

// In each group of 2 * width lanes, the upper half becomes copies of the last lane of the lower
// half, which itself is replaced by that of `other`.
template <int width, class V, int... i>
inline V spread(V x, V other, std::integer_sequence<int, i...>) {
  constexpr int kLanes = sizeof...(i);
  return __builtin_shufflevector(
      x, other, ((i & width) != 0 ? (i & ~(2 * width - 1)) + width - 1 : kLanes + i)...);
}
template <int lane, class V, int... i>
inline V everywhere(V x, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(x, x, (i * 0 + lane)...);
}
template <class S, Scan kind, int width>
inline void scan_step(Granule<S>& g) {
  using G = Granule<S>;
  using Lanes = std::make_integer_sequence<int, G::kPartLanes>;
  if constexpr (width < G::kPartLanes) {
    const typename G::V none = typename G::V{} + S(kind == Scan::kProduct ? 1 : 0);
    for (auto& part : g.part) {
      part = ScanOp<kind>::join(part, spread<width>(part, none, Lanes()));
    }
  } else {
    constexpr int kApart = width / G::kPartLanes;
    for (int p = 0; p < G::kParts; ++p) {
      if ((p & kApart) == 0) continue;
      auto last = g.part[(p & ~(2 * kApart - 1)) + kApart - 1];
      g.part[p] = ScanOp<kind>::join(g.part[p], everywhere<G::kPartLanes - 1>(last, Lanes()));
    }
  }
}
// Bounds within which the product of a few numbers neither overflows nor underflows.
constexpr double kSmall = 1e-290, kLarge = 1e290;

template <class T, Scan kind>
void along_vectors(const void* in, void* out, int64_t n, void* state) {
  using S = typename StateOf<T>::type;
  using G = Granule<S>;
  using V = typename G::V;
  using Lanes = std::make_integer_sequence<int, G::kPartLanes>;
  constexpr bool kChecks =
      std::is_same_v<T, double> || (kind == Scan::kProduct && !std::is_integral_v<T>);
  auto* x = static_cast<const T*>(in);
  auto* y = static_cast<T*>(out);
  // Saves the input of runs that are checked, because they may be repeated after being overwritten.
  constexpr int64_t kRun = 64;
  int64_t i = 0;
  while (n - i >= kRun) {
    S& carry = *static_cast<S*>(state);
    T kept[kChecks ? kRun : 1];
    if constexpr (kChecks) std::memcpy(kept, x + i, sizeof(kept));
    V before = V{} + carry;
    V doubt = V{};
    for (int64_t k = 0; k < kRun; k += G::kLanes) {
      G g = load<S>(x + i + k);
      scan_step<S, kind, 1>(g);
      scan_step<S, kind, 2>(g);
      scan_step<S, kind, 4>(g);
      S results[G::kLanes];
      for (int p = 0; p < G::kParts; ++p) {
        if constexpr (kChecks) {
          V size = g.part[p] < 0 ? -g.part[p] : g.part[p];
          // 0 if the value is within bounds.
          V fine = kind == Scan::kProduct ? (size > kSmall) & (size < kLarge) ? V{} : V{} + 1
                                          : g.part[p] - g.part[p];
          doubt += fine;
        }
        V result = ScanOp<kind>::join(before, g.part[p]);
        if constexpr (kChecks) doubt += result - result;
        if (p + 1 == G::kParts) before = everywhere<G::kPartLanes - 1>(result, Lanes());
        std::memcpy(results + p * G::kPartLanes, &result, sizeof(result));
      }
      for (int l = 0; l < G::kLanes; ++l) y[i + k + l] = static_cast<T>(results[l]);
    }
    if constexpr (kChecks) {
      bool doubtful = false;
      for (int l = 0; l < G::kPartLanes; ++l) doubtful |= !(doubt[l] == 0);
      if (doubtful) {
        along<T, kind>(kept, y + i, kRun, state);
        i += kRun;
        continue;
      }
    }
    carry = before[0];
    i += kRun;
  }
  along<T, kind>(x + i, y + i, n - i, state);
}

template <class T>
constexpr void add(ScanTable& table) {
  constexpr int at = loop_index(CppTypeToScalarType<T>::value);
  using S = typename StateOf<T>::type;
  table.loops[0][at] = {&init<S, Scan::kSum>, &along<T, Scan::kSum>, &across<T, Scan::kSum>};
  table.loops[1][at] = {&init<S, Scan::kProduct>, &along<T, Scan::kProduct>,
                        &across<T, Scan::kProduct>};
  if constexpr (!is_complex_type_v<T>) table.loops[0][at].along = &along_vectors<T, Scan::kSum>;
  // Products of float64 have no vector loop, because in another order of multiplication
  // intermediate products may overflow or underflow.
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int64_t>) {
    table.loops[1][at].along = &along_vectors<T, Scan::kProduct>;
  }
  if constexpr (!std::is_integral_v<T>) {
    table.loops[2][at] = {&init<S, Scan::kLogSumExp>, &along<T, Scan::kLogSumExp>,
                          &across<T, Scan::kLogSumExp>};
  }
}
constexpr ScanTable make_table() {
  ScanTable table{};
  add<int64_t>(table);
  add<float>(table);
  add<double>(table);
  add<complex<float>>(table);
  add<complex<double>>(table);
  return table;
}
const ScanTable& scan_table() {
  static constexpr ScanTable table = make_table();
  return table;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(scan_on, &scan_table);

}  // namespace lamella::native
