// Vectorized<T>: a few elements at a time, for kernels that are written over vectors.
//
//   using Vec = vec::Vectorized<float>;
//   vec::map<float>([](Vec x) { return x * x.exp(); }, out, in, size);
//
// Elementary functions of float and double are Lamella's own (simd/vec_math.h) for the capability
// that CPU_CAPABILITY names; those of other types are the standard library's, lane by lane.
#pragma once
#include <cmath>
#include <tuple>
#include <utility>

#include "lamella/core/complex.h"
#include "lamella/core/for_each.h"
#include "lamella/core/half.h"
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/inverse_trigonometric.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/power.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::vec {
inline namespace CPU_CAPABILITY {

#if defined(CPU_CAPABILITY_AVX512)
inline constexpr int kVectorBytes = 64;
#else
inline constexpr int kVectorBytes = 32;
#endif

template <class T>
inline constexpr bool is_reduced_floating_point_v =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
// The type in which a lane is computed.
template <class T>
using Wide = std::conditional_t<is_reduced_floating_point_v<T>, float, T>;
template <class T>
inline constexpr bool is_complex_lane = false;
template <class T>
inline constexpr bool is_complex_lane<complex<T>> = true;
template <class T>
inline constexpr bool is_real_lane = !is_complex_lane<T> && !std::is_integral_v<T>;

template <class T>
class Vectorized {
  static constexpr int kSize = kVectorBytes / static_cast<int>(sizeof(T));

 public:
  using value_type = T;
  using size_type = int;
  static constexpr size_type size() { return kSize; }

  Vectorized() : Vectorized(T(0)) {}
  Vectorized(T value) {  // NOLINT: implicit
    for (T& lane : lanes_) lane = value;
  }
  // All lanes, first to last.
  template <class... U>
    requires(sizeof...(U) + 2 == static_cast<size_t>(kSize))
  Vectorized(T first, T second, U... rest) : lanes_{first, second, static_cast<T>(rest)...} {}

  // Loads the first `count` lanes; the others are 0.
  static Vectorized loadu(const void* from, int64_t count = kSize) {
    Vectorized result;
    __builtin_memcpy(result.lanes_, from, static_cast<size_t>(count) * sizeof(T));
    return result;
  }
  static Vectorized loadu_one_fourth(const void* from) { return loadu(from, kSize / 4); }
  void store(void* to, int64_t count = kSize) const {
    __builtin_memcpy(to, lanes_, static_cast<size_t>(count) * sizeof(T));
  }
  const T& operator[](int i) const { return lanes_[i]; }
  T& operator[](int i) { return lanes_[i]; }

  // Lanes of b where the bit of the mask, or the lane of the mask, is set; of a elsewhere.
  template <int64_t kMask>
  static Vectorized blend(const Vectorized& a, const Vectorized& b) {
    return lanewise([&](int i) { return (kMask >> i) & 1 ? b[i] : a[i]; });
  }
  static Vectorized blendv(const Vectorized& a, const Vectorized& b, const Vectorized& mask) {
    return lanewise([&](int i) { return mask.is_set(i) ? b[i] : a[i]; });
  }
  // The first `count` lanes of b, then those of a.
  static Vectorized set(const Vectorized& a, const Vectorized& b, int64_t count = kSize) {
    return lanewise([&](int i) { return i < count ? b[i] : a[i]; });
  }
  template <class Step>
  static Vectorized arange(T base = T(0), Step step = Step(1)) {
    return lanewise([&](int i) {
      return static_cast<T>(static_cast<Wide<T>>(base) + static_cast<Wide<T>>(step) * Wide<T>(i));
    });
  }
  // f(i) for each lane.
  template <class F>
  static Vectorized lanewise(F&& f) {
    Vectorized result{Unset()};
    for (int i = 0; i < kSize; ++i) result.lanes_[i] = f(i);
    return result;
  }

  Vectorized map(T (*f)(T)) const {
    return each([f](T x) { return f(x); });
  }
  Vectorized map(T (*f)(const T&)) const {
    return each([f](const T& x) { return f(x); });
  }
  T reduce(T (*f)(T)) const { return f(lanes_[0]); }
  // A bit for each lane that is 0.
  int zero_mask() const {
    int mask = 0;
    for (int i = 0; i < kSize; ++i) mask |= (lanes_[i] == T(0)) << i;
    return mask;
  }
  bool has_inf_nan() const {
    bool found = false;
    for (T lane : lanes_) found = found || !is_finite(lane);
    return found;
  }
  // A mask: all bits of the lanes that are NaN.
  Vectorized isnan() const {
    return lanewise([&](int i) { return filled(is_nan(lanes_[i])); });
  }

  Vectorized abs() const {
    return each([](T x) {
      if constexpr (std::is_unsigned_v<T> || std::is_same_v<T, bool>) {
        return x;
      } else if constexpr (std::is_integral_v<T>) {
        return x < 0 ? static_cast<T>(-x) : x;
      } else if constexpr (is_complex_lane<T>) {
        return T(std::abs(x));
      } else {
        return static_cast<T>(std::fabs(static_cast<Wide<T>>(x)));
      }
    });
  }
  Vectorized neg() const { return -*this; }
  Vectorized conj() const {
    return parts([](auto x) { return T(x.real(), -x.imag()); }, [](T x) { return x; });
  }
  Vectorized real() const {
    return parts([](auto x) { return T(x.real()); }, [](T x) { return x; });
  }
  Vectorized imag() const {
    return parts([](auto x) { return T(x.imag()); }, [](T) { return T(0); });
  }
  Vectorized sgn() const {
    return each([](T x) { return static_cast<T>((T(0) < x) - (x < T(0))); });
  }
  Vectorized reciprocal() const { return Vectorized(T(1)) / *this; }
  Vectorized rsqrt() const { return sqrt().reciprocal(); }
  Vectorized frac() const { return *this - trunc(); }

// Defines a function by Lamella's vector function where T has one, else by the standard library's.
#define LAMELLA_VEC_FUNCTION(name)                                                     \
  Vectorized name() const {                                                            \
    if constexpr (std::is_same_v<Wide<T>, float> || std::is_same_v<Wide<T>, double>) { \
      return by_vectors([](auto x) { return lamella::native::v_##name(x); });          \
    } else {                                                                           \
      return each([](T x) { return static_cast<T>(std::name(x)); });                   \
    }                                                                                  \
  }
  LAMELLA_FOR_EACH(LAMELLA_VEC_FUNCTION, exp, log, sin, cos, tan, asin, acos, atan, asinh, acosh,
                   atanh, sinh, cosh, sqrt)
#undef LAMELLA_VEC_FUNCTION
// The same for real numbers alone.
#define LAMELLA_VEC_FUNCTION(name)                                          \
  Vectorized name() const {                                                 \
    return by_vectors([](auto x) { return lamella::native::v_##name(x); }); \
  }
  LAMELLA_FOR_EACH(LAMELLA_VEC_FUNCTION, exp2, expm1, log1p, erf, erfc, erfinv, sigmoid)
#undef LAMELLA_VEC_FUNCTION
  Vectorized exp_u20() const { return exp(); }
  Vectorized fexp_u20() const { return exp(); }
  Vectorized tanh() const {
    return each([](T x) { return static_cast<T>(std::tanh(static_cast<Wide<T>>(x))); });
  }
// Functions that the standard library has, lane by lane.
#define LAMELLA_VEC_FUNCTION(name)                                                       \
  Vectorized name() const {                                                              \
    return each([](T x) { return static_cast<T>(std::name(static_cast<Wide<T>>(x))); }); \
  }
  LAMELLA_FOR_EACH(LAMELLA_VEC_FUNCTION, log2, log10, lgamma, ceil, floor, nearbyint, trunc)
#undef LAMELLA_VEC_FUNCTION
  Vectorized round() const { return nearbyint(); }
#define LAMELLA_VEC_FUNCTION(name)                                                        \
  Vectorized name(const Vectorized& other) const {                                        \
    return each(other, [](T x, T y) {                                                     \
      return static_cast<T>(std::name(static_cast<Wide<T>>(x), static_cast<Wide<T>>(y))); \
    });                                                                                   \
  }
  LAMELLA_FOR_EACH(LAMELLA_VEC_FUNCTION, pow, fmod, hypot, atan2, nextafter, copysign)
#undef LAMELLA_VEC_FUNCTION

  Vectorized operator-() const {
    return each([](T x) { return static_cast<T>(-x); });
  }
  Vectorized operator~() const {
    return bits([](auto x) { return ~x; });
  }
  Vectorized operator!() const {
    return each([](T x) { return static_cast<T>(x == T(0)); });
  }
#define LAMELLA_VEC_OPERATOR(op)                                            \
  friend Vectorized operator op(const Vectorized& a, const Vectorized& b) { \
    return a.each(b, [](T x, T y) { return static_cast<T>(x op y); });      \
  }                                                                         \
  friend Vectorized& operator op##=(Vectorized & a, const Vectorized & b) { return a = a op b; }
  LAMELLA_FOR_EACH(LAMELLA_VEC_OPERATOR, +, -, *, /)
#undef LAMELLA_VEC_OPERATOR
#define LAMELLA_VEC_OPERATOR(op)                                            \
  friend Vectorized operator op(const Vectorized& a, const Vectorized& b) { \
    return a.bits(b, [](auto x, auto y) { return x op y; });                \
  }                                                                         \
  friend Vectorized& operator op##=(Vectorized & a, const Vectorized & b) { return a = a op b; }
  LAMELLA_FOR_EACH(LAMELLA_VEC_OPERATOR, &, |, ^)
#undef LAMELLA_VEC_OPERATOR
  friend Vectorized operator<<(const Vectorized& a, const Vectorized& b) {
    return a.each(b, [](T x, T y) { return static_cast<T>(x << y); });
  }
  friend Vectorized operator>>(const Vectorized& a, const Vectorized& b) {
    return a.each(b, [](T x, T y) { return static_cast<T>(x >> y); });
  }
// Comparison operators return a mask; the named functions return 1 and 0.
#define LAMELLA_VEC_COMPARISON(op, name)                                    \
  friend Vectorized operator op(const Vectorized& a, const Vectorized& b) { \
    return a.each(b, [](T x, T y) { return filled(x op y); });              \
  }                                                                         \
  Vectorized name(const Vectorized& other) const {                          \
    return each(other, [](T x, T y) { return static_cast<T>(x op y); });    \
  }
  LAMELLA_VEC_COMPARISON(==, eq)
  LAMELLA_VEC_COMPARISON(!=, ne)
  LAMELLA_VEC_COMPARISON(<, lt)
  LAMELLA_VEC_COMPARISON(<=, le)
  LAMELLA_VEC_COMPARISON(>, gt)
  LAMELLA_VEC_COMPARISON(>=, ge)
#undef LAMELLA_VEC_COMPARISON

  // f of each lane, and of pairs of lanes.
  template <class C, class R>
  Vectorized parts(C&& of_complex, R&& of_real) const {
    if constexpr (is_complex_lane<T>)
      return each(of_complex);
    else
      return each(of_real);
  }
  template <class F>
  Vectorized each(F&& f) const {
    return lanewise([&](int i) { return f(lanes_[i]); });
  }
  template <class F>
  Vectorized each(const Vectorized& other, F&& f) const {
    return lanewise([&](int i) { return f(lanes_[i], other.lanes_[i]); });
  }
  static bool is_nan(T x) { return x != x; }

 private:
  struct Unset {};
  explicit Vectorized(Unset) {}

  static T filled(bool on) {
    T value;
    __builtin_memset(static_cast<void*>(&value), on ? 0xff : 0, sizeof(T));
    if constexpr (std::is_same_v<T, bool>) value = on;
    return value;
  }
  bool is_set(int i) const {
    unsigned char bytes[sizeof(T)];
    __builtin_memcpy(bytes, &lanes_[i], sizeof(T));
    return std::is_same_v<T, bool> ? bytes[0] != 0 : bytes[sizeof(T) - 1] >> 7 != 0;
  }
  static bool is_finite(T x) {
    if constexpr (is_complex_lane<T>) {
      return std::isfinite(x.real()) && std::isfinite(x.imag());
    } else {
      return std::isfinite(static_cast<double>(x));
    }
  }
  template <class F>
  Vectorized bits(F&& f) const {
    return bits(*this, [&](auto x, auto) { return f(x); });
  }
  template <class F>
  Vectorized bits(const Vectorized& other, F&& f) const {
    using Word = uint64_t;
    Vectorized result{Unset()};
    for (int i = 0; i < kVectorBytes; i += static_cast<int>(sizeof(Word))) {
      Word x, y;
      __builtin_memcpy(&x, bytes() + i, sizeof(Word));
      __builtin_memcpy(&y, other.bytes() + i, sizeof(Word));
      x = static_cast<Word>(f(x, y));
      __builtin_memcpy(reinterpret_cast<char*>(result.lanes_) + i, &x, sizeof(Word));
    }
    return result;
  }
  const char* bytes() const { return reinterpret_cast<const char*>(lanes_); }
  // f of Lamella's own vectors, which may be shorter; half precision is computed in float.
  template <class F>
  Vectorized by_vectors(F&& f) const {
    using V = std::conditional_t<std::is_same_v<T, double>, native::VecD, native::VecF>;
    constexpr int kLanes = sizeof(V) / sizeof(Wide<T>);
    constexpr int kPadded = kSize < kLanes ? kLanes : kSize;
    Wide<T> wide[kPadded] = {};
    for (int i = 0; i < kSize; ++i) wide[i] = static_cast<Wide<T>>(lanes_[i]);
    for (int i = 0; i < kPadded; i += kLanes) {
      V part;
      __builtin_memcpy(&part, wide + i, sizeof(V));
      part = f(part);
      __builtin_memcpy(wide + i, &part, sizeof(V));
    }
    return lanewise([&](int i) { return static_cast<T>(wide[i]); });
  }

  alignas(kVectorBytes) T lanes_[kSize];
};

// ---- Functions of vectors ----

template <class Stream, class T>
  requires requires(Stream& out) { out.write("", 1); }
Stream& operator<<(Stream& out, const Vectorized<T>& vector) {
  out << "vec[";
  for (int i = 0; i < vector.size(); ++i) out << (i == 0 ? "" : ", ") << vector[i];
  return out << "]", out;
}

// NaN if one of the two is.
template <class T>
Vectorized<T> maximum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return a.each(b, [](T x, T y) { return x > y || x != x ? x : y; });
}
template <class T>
Vectorized<T> minimum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return a.each(b, [](T x, T y) { return x < y || x != x ? x : y; });
}
template <class T>
Vectorized<T> clamp_min(const Vectorized<T>& a, const Vectorized<T>& low) {
  return a.each(low, [](T x, T bound) { return x < bound ? bound : x; });
}
template <class T>
Vectorized<T> clamp_max(const Vectorized<T>& a, const Vectorized<T>& high) {
  return a.each(high, [](T x, T bound) { return x > bound ? bound : x; });
}
template <class T>
Vectorized<T> clamp(const Vectorized<T>& a, const Vectorized<T>& low, const Vectorized<T>& high) {
  return clamp_max(clamp_min(a, low), high);
}
template <class T>
Vectorized<T> fmadd(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b + c;
}
template <class T>
Vectorized<T> fmsub(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return a * b - c;
}
template <class T>
Vectorized<T> fnmadd(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return c - a * b;
}
template <class T>
Vectorized<T> flip(const Vectorized<T>& a) {
  return Vectorized<T>::lanewise([&](int i) { return a[a.size() - 1 - i]; });
}
// Deinterleaves a pair of vectors into its even and odd lanes, and interleaves them again.
template <class T>
std::pair<Vectorized<T>, Vectorized<T>> deinterleave2(const Vectorized<T>& a,
                                                      const Vectorized<T>& b) {
  constexpr int n = Vectorized<T>::size();
  auto at = [&](int i) { return i < n ? a[i] : b[i - n]; };
  return {Vectorized<T>::lanewise([&](int i) { return at(2 * i); }),
          Vectorized<T>::lanewise([&](int i) { return at(2 * i + 1); })};
}
template <class T>
std::pair<Vectorized<T>, Vectorized<T>> interleave2(const Vectorized<T>& a,
                                                    const Vectorized<T>& b) {
  constexpr int n = Vectorized<T>::size();
  auto at = [&](int i) { return i % 2 == 0 ? a[i / 2] : b[i / 2]; };
  return {Vectorized<T>::lanewise([&](int i) { return at(i); }),
          Vectorized<T>::lanewise([&](int i) { return at(i + n); })};
}
template <int64_t kScale = 1, class T, class I>
Vectorized<T> gather(const T* from, const Vectorized<I>& index) {
  return Vectorized<T>::lanewise(
      [&](int i) { return from[static_cast<int64_t>(index[i]) * kScale / int64_t{sizeof(T)}]; });
}
// The bits of one type as another of its size.
template <class To, class From>
Vectorized<To> cast(const Vectorized<From>& from) {
  return Vectorized<To>::loadu(&from);
}
template <class T>
using int_same_size_t =
    std::conditional_t<sizeof(T) == 8, int64_t,
                       std::conditional_t<sizeof(T) == 4, int32_t,
                                          std::conditional_t<sizeof(T) == 2, int16_t, int8_t>>>;
template <class T>
auto convert_to_int_of_same_size(const Vectorized<T>& from) {
  using I = int_same_size_t<T>;
  return Vectorized<I>::lanewise([&](int i) { return static_cast<I>(std::nearbyint(from[i])); });
}
template <class From, class To>
void convert(const From* from, To* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}
// The two halves of a vector of half precision in float, and back.
template <class T>
std::tuple<Vectorized<float>, Vectorized<float>> convert_to_float(const Vectorized<T>& from) {
  constexpr int n = Vectorized<float>::size();
  return {Vectorized<float>::lanewise([&](int i) { return static_cast<float>(from[i]); }),
          Vectorized<float>::lanewise([&](int i) { return static_cast<float>(from[i + n]); })};
}
template <class T>
Vectorized<T> convert_from_float(const Vectorized<float>& a, const Vectorized<float>& b) {
  constexpr int n = Vectorized<float>::size();
  return Vectorized<T>::lanewise([&](int i) { return static_cast<T>(i < n ? a[i] : b[i - n]); });
}
inline auto convert_bfloat16_float(const Vectorized<BFloat16>& a) { return convert_to_float(a); }
inline auto convert_half_float(const Vectorized<Half>& a) { return convert_to_float(a); }
inline auto convert_float_bfloat16(const Vectorized<float>& a, const Vectorized<float>& b) {
  return convert_from_float<BFloat16>(a, b);
}
inline auto convert_float_half(const Vectorized<float>& a, const Vectorized<float>& b) {
  return convert_from_float<Half>(a, b);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::vec
