// Uniform, normal and exponential numbers from random words, bit for bit equal to PyTorch's.
#include "lamella/kernels/cpu/simd/random.h"

#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// a * b + c, rounded once. Without an instruction for it, float32 goes through float64, where the
// product is exact: the second rounding changes one result in some hundred million.
inline float fused(float a, float b, float c) {
#if defined(__FMA__) || !defined(__x86_64__)
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                            static_cast<double>(c));
#endif
}
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Joins two words, the first of which is the high one.
inline uint64_t joined(const uint32_t* words) {
  uint64_t both;
  std::memcpy(&both, words, sizeof(both));
  return (both << 32 | both >> 32) & ((uint64_t{1} << 53) - 1);
}

template <class T, class Unit>
inline void scale(T* to, int64_t n, T low, T span, T end, Unit unit) {
  if (low == 0) {  // a product suffices
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      T value = unit(i) * span;
      to[i] = value == end ? low : value;
    }
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T value = fused(unit(i), span, low);
    to[i] = value == end ? low : value;
  }
}
void uniform_float(const uint32_t* words, float* to, int64_t n, float low, float span, float end) {
  scale(to, n, low, span, end, [=](int64_t i) {
    return static_cast<float>(static_cast<int32_t>(words[i] & 0xffffffu)) * 0x1p-24f;
  });
}
void uniform_double(const uint32_t* words, double* to, int64_t n, double low, double span,
                    double end) {
  scale(to, n, low, span, end, [=](int64_t i) {
    return static_cast<double>(static_cast<int64_t>(joined(words + 2 * i))) * 0x1p-53;
  });
}

void below(const uint32_t* words, bool* to, int64_t n, uint64_t bound) {
  auto* out = reinterpret_cast<uint8_t*>(to);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = joined(words + 2 * i) < bound;
}

void remainders(const uint32_t* words, int64_t* to, int64_t n, int64_t low, uint32_t range) {
  if (range == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = low;
    return;
  }
  // The quotient, computed as a product with the reciprocal, is off by at most one.
  const double reciprocal = 1.0 / range;
  const auto divisor = static_cast<int32_t>(range);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    double word = static_cast<double>(static_cast<int32_t>(words[i] ^ 0x80000000u)) + 0x1p31;
    auto quotient = static_cast<uint32_t>(static_cast<int32_t>(word * reciprocal));
    auto rest = static_cast<int32_t>(words[i] - quotient * range);
    rest = rest < 0 ? rest + divisor : rest;
    rest = rest >= divisor ? rest - divisor : rest;
    to[i] = low + rest;
  }
}

// The logarithm, sine and cosine of the Cephes library (S. Moshier, 1992), in the order of
// operations of PyTorch's vectors. `x` must be positive and not denormal.
inline float log_of(float x) {
  auto bits = __builtin_bit_cast(int32_t, x);
  float exponent = static_cast<float>((bits >> 23) - 126);
  float m = __builtin_bit_cast(float, (bits & 0x7fffff) | 0x3f000000);  // in [0.5, 1)
  bool small = m < 0.707106781186547524f;
  exponent = small ? exponent - 1.0f : exponent;
  m = small ? (m - 1.0f) + m : m - 1.0f;
  float square = m * m;
  float p = 7.0376836292e-2f;
  p = fused(p, m, -1.1514610310e-1f);
  p = fused(p, m, 1.1676998740e-1f);
  p = fused(p, m, -1.2420140846e-1f);
  p = fused(p, m, 1.4249322787e-1f);
  p = fused(p, m, -1.6668057665e-1f);
  p = fused(p, m, 2.0000714765e-1f);
  p = fused(p, m, -2.4999993993e-1f);
  p = fused(p, m, 3.3333331174e-1f);
  p = fused(p * m, square, exponent * -2.12194440e-4f);
  p = fused(square, -0.5f, p);
  return fused(exponent, 0.693359375f, m + p);
}
// Requires 0 <= x < 8192.
inline void sin_cos_of(float x, float& sine, float& cosine) {
  int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  float y = static_cast<float>(octant);
  x = fused(y, -0.78515625f, x);
  x = fused(y, -2.4187564849853515625e-4f, x);
  x = fused(y, -3.77489497744594108e-8f, x);
  float z = x * x;
  float c = 2.443315711809948e-5f;
  c = fused(c, z, -1.388731625493765e-3f);
  c = fused(c, z, 4.166664568298827e-2f);
  c = fused(c * z, z, -(z * 0.5f)) + 1.0f;
  float s = -1.9515295891e-4f;
  s = fused(s, z, 8.3321608736e-3f);
  s = fused(s, z, -1.6666654611e-1f);
  s = fused(s * z, x, x);
  bool straight = (octant & 2) == 0;
  float of_sine = straight ? s : c, of_cosine = straight ? c : s;
  sine = (octant & 4) != 0 ? -of_sine : of_sine;
  cosine = ((octant + 2) & 4) != 0 ? -of_cosine : of_cosine;
}

// The Box-Muller transform: the first eight of sixteen give the radius, the others the angle.
void normal_blocks(float* data, int64_t blocks, float mean, float std) {
  constexpr int64_t kTogether = 8, kHalf = 8;
  for (int64_t b = 0; b < blocks; b += kTogether) {
    int64_t now = blocks - b < kTogether ? blocks - b : kTogether;
    float first[kTogether * kHalf] = {}, second[kTogether * kHalf] = {};
    float* at = data + b * 2 * kHalf;
    for (int64_t j = 0; j < now; ++j) {
      std::memcpy(first + j * kHalf, at + j * 2 * kHalf, kHalf * sizeof(float));
      std::memcpy(second + j * kHalf, at + (j * 2 + 1) * kHalf, kHalf * sizeof(float));
    }
    for (int64_t i = 0; i < kTogether * kHalf; ++i) {
      float radius = __builtin_sqrtf(-2.0f * log_of(1.0f - first[i]));
      float sine, cosine;
      sin_cos_of(6.283185307179586f * second[i], sine, cosine);
      first[i] = fused(radius * cosine, std, mean);
      second[i] = fused(radius * sine, std, mean);
    }
    for (int64_t j = 0; j < now; ++j) {
      std::memcpy(at + j * 2 * kHalf, first + j * kHalf, kHalf * sizeof(float));
      std::memcpy(at + (j * 2 + 1) * kHalf, second + j * kHalf, kHalf * sizeof(float));
    }
  }
}

template <class T>
struct Exponential {
  T rate;
  explicit Exponential(const void* p) : rate(param<T>(p, 0)) {}
  Vec<T> operator()(Vec<T> a) const { return -v_log1p(-a) / rate; }
};
void exponential(double* data, int64_t n, double rate) {
  char* const both[] = {reinterpret_cast<char*>(data), reinterpret_cast<char*>(data)};
  vector_loop<Exponential<double>, double, 1>(both, n, &rate);
}

const RandomLoops& random_loops() {
  static constexpr RandomLoops loops = {&uniform_float, &uniform_double, &below,
                                        &remainders,    &normal_blocks,  &exponential};
  return loops;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(random_loops_on, &random_loops);

}  // namespace lamella::native
