// Bessel functions in vectors, compiled for each capability.
//
// Note [Bessel functions]
//   Below 8 the functions of the first kind are series in x^2, and those of the second kind are
//   2 / pi log(x) times these, a pole and another series. From there on both are
//   sqrt(2 / (pi x)) (P cos(chi) -+ Q sin(chi)), with chi = x - pi / 4 or 3 pi / 4 and P and Q as
//   series in 1 / x^2 (Abramowitz and Stegun, Handbook of Mathematical Functions, 9.2.5 to 9.2.6).
//   Modified ones are the power series 9.6.11 and 9.6.13 up to 1, and a series in 1 / x beyond.
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"
#include "lamella/kernels/families/special/bessel_coefficients.h"
#include "lamella/kernels/families/special/over_blocks.h"

namespace lamella::special {
inline namespace CPU_CAPABILITY {
namespace {

using namespace native;  // NOLINT(google-build-using-namespace): vectors of doubles

constexpr double kTwoOverPiWhole = 0.63661977236758134308;
constexpr double kEuler = 0.57721566490153286061;
constexpr double kLogTwo = 0.69314718055994530942;

// Clenshaw's sum of a Chebyshev series.
template <int kTerms>
LAMELLA_ALWAYS_INLINE VecD v_chebyshev(VecD u, const double (&c)[kTerms]) {
  VecD twice = u + u, b = {}, before = {};
  for (int j = kTerms - 1; j > 0; --j) {
    VecD next = v_fma(twice, b, c[j] - before);
    before = b;
    b = next;
  }
  return v_fma(u, b, c[0] / 2 - before);
}

// For |x| >= 8: Note [Bessel functions].
template <int kOrder, bool kSecond>
LAMELLA_ALWAYS_INLINE VecD by_phase(VecD size) {
  VecD inverse = 1 / size, w = 64 * (inverse * inverse), u = w + w - 1;
  VecD p = v_chebyshev(u, kPhaseP[kOrder]);
  VecD q = v_chebyshev(u, kPhaseQ[kOrder]) * inverse;
  Quadrant<VecD> quadrant = v_reduce(size);
  VecD sin = v_sin_of(quadrant, quadrant.n), cos = v_sin_of(quadrant, quadrant.n + 1);
  // sqrt(2) times the cosine and the sine of chi.
  VecD cos_chi = kOrder == 0 ? cos + sin : sin - cos;
  VecD sin_chi = kOrder == 0 ? sin - cos : -(sin + cos);
  VecD turned = kSecond ? v_fma(p, sin_chi, q * cos_chi) : v_fma(p, cos_chi, -(q * sin_chi));
  VecD found = turned * v_sqrt(inverse * (kTwoOverPiWhole / 2));
  return size == kInf<double> ? VecD{} : found;
}

// Coefficients of power series in x^2 / 4: `whole` of I (J has them with alternating signs), and
// `weighted`, the same times the sums of 1 / k that occur in K and Y.
struct PowerSeries {
  static constexpr int kTerms = 12;
  double whole[kTerms], weighted[kTerms];
};
template <int kOrder>
constexpr PowerSeries power_series() {
  PowerSeries s = {};
  double term = 1, psi = kOrder == 0 ? 0 : 1 - 2 * kEuler;
  for (int k = 0; k < PowerSeries::kTerms; ++k) {
    if (k > 0) {
      double one = 1.0 / k, next = 1.0 / (k + kOrder);
      term *= one * next;
      psi += kOrder == 0 ? one : one + next;
    }
    s.whole[k] = term;
    s.weighted[k] = term * psi;
  }
  return s;
}
template <int kTerms>
LAMELLA_ALWAYS_INLINE VecD v_powers(VecD q, const double (&c)[kTerms]) {
  VecD sum = VecD{} + c[kTerms - 1];
  for (int k = kTerms - 2; k >= 0; --k) sum = v_fma(sum, q, VecD{} + c[k]);
  return sum;
}

template <int kOrder>
VecD v_bessel_j(VecD x) {
  VecD size = v_abs(x), found = {};
  auto far = size >= 8;
  if (v_any(~far)) {
    VecD z = size * size;
    found = v_chebyshev(z * 0x1p-5 - 1, kSmallJ[kOrder]);
    // The power series is accurate to the last bits where |J| is largest.
    static constexpr PowerSeries kSeries = power_series<kOrder>();
    auto near = size < 2;
    if (v_any(near)) {
      VecD sum = v_powers(z * -0.25, kSeries.whole);
      found = near ? (kOrder == 0 ? sum : sum * 0.5) : found;
    }
    if (kOrder == 1) found *= size;
  }
  if (v_any(far)) found = far ? by_phase<kOrder, false>(far ? size : VecD{} + 8) : found;
  return kOrder == 1 ? v_flip(found, v_sign(x)) : found;
}

// Y for x <= 2: Abramowitz and Stegun, 9.1.11 and 9.1.13.
template <int kOrder>
LAMELLA_ALWAYS_INLINE VecD y_by_powers(VecD x) {
  static constexpr PowerSeries kSeries = power_series<kOrder>();
  VecD q = x * x * -0.25, log = v_log(x) - kLogTwo;
  VecD whole = v_powers(q, kSeries.whole), sum = v_powers(q, kSeries.weighted);
  if (kOrder == 0) return kTwoOverPiWhole * ((log + kEuler) * whole - sum);
  return kTwoOverPiWhole * (x * 0.5 * (log * whole - sum * 0.5) - 1 / x);
}

template <int kOrder>
VecD v_bessel_y(VecD x) {
  VecD found = {};
  auto far = x >= 8;
  if (v_any(~far)) {
    VecD u = x * x * 0x1p-5 - 1;
    VecD j = v_chebyshev(u, kSmallJ[kOrder]), rest = v_chebyshev(u, kSmallY[kOrder]);
    VecD log = kTwoOverPiWhole * v_log(x);
    found = v_fma(log, j, rest);
    if (kOrder == 1) found = v_fma(found, x, -(kTwoOverPiWhole / x));
    auto near = x < 2;
    if (v_any(near)) found = near ? y_by_powers<kOrder>(x) : found;
    found = x == 0 ? VecD{} - kInf<double> : found;
    found = x < 0 ? VecD{} + kQuietNan<double> : found;
  }
  if (v_any(far)) found = far ? by_phase<kOrder, true>(far ? x : VecD{} + 8) : found;
  return found;
}

template <int kOrder, bool kScaled>
VecD v_bessel_k(VecD x) {
  static constexpr PowerSeries kSeries = power_series<kOrder>();
  VecD found = {};
  auto far = x > 1;
  if (v_any(~far)) {
    VecD q = x * x * 0.25, log = v_log(x) - kLogTwo;
    VecD whole = v_powers(q, kSeries.whole), sum = v_powers(q, kSeries.weighted);
    found = kOrder == 0 ? sum - (log + kEuler) * whole
                        : 1 / x + (log * (x * 0.5) * whole - x * 0.25 * sum);
    if (kScaled) found *= v_exp(x);
    found = x == 0 ? VecD{} + kInf<double> : found;
    found = x < 0 ? VecD{} + kQuietNan<double> : found;
  }
  if (v_any(far)) {
    VecD inside = far ? x : VecD{} + 2;
    VecD large = v_chebyshev(2 / inside - 1, kLargeK[kOrder]) / v_sqrt(inside);
    if (!kScaled) large *= v_exp(-inside);
    found = far ? (x == kInf<double> ? VecD{} : large) : found;
  }
  return found;
}

#define LAMELLA_BLOCK(name, f)                                 \
  void name(const double* from, double* to, int64_t count) {   \
    over_blocks(from, to, count, [](VecD x) { return f(x); }); \
  }
LAMELLA_BLOCK(j0_block, v_bessel_j<0>)
LAMELLA_BLOCK(j1_block, v_bessel_j<1>)
LAMELLA_BLOCK(y0_block, v_bessel_y<0>)
LAMELLA_BLOCK(y1_block, v_bessel_y<1>)
LAMELLA_BLOCK(k0_block, (v_bessel_k<0, false>))
LAMELLA_BLOCK(k1_block, (v_bessel_k<1, false>))
LAMELLA_BLOCK(scaled_k0_block, (v_bessel_k<0, true>))
LAMELLA_BLOCK(scaled_k1_block, (v_bessel_k<1, true>))
#undef LAMELLA_BLOCK

}  // namespace

void set_functions(Blocks* blocks) {
  auto set = [&](Function f, auto* block) { blocks->function[static_cast<int>(f)] = block; };
  set(Function::kJ0, &j0_block);
  set(Function::kJ1, &j1_block);
  set(Function::kY0, &y0_block);
  set(Function::kY1, &y1_block);
  set(Function::kK0, &k0_block);
  set(Function::kK1, &k1_block);
  set(Function::kScaledK0, &scaled_k0_block);
  set(Function::kScaledK1, &scaled_k1_block);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::special
