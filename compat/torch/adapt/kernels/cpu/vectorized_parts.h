// VectorizedN<T, N>: N vectors as one; VecMask<T, N>: which of their lanes are meant; convert of
// vectors to another type.
#pragma once
#include <array>

#include "lamella/kernels/cpu/vectorized.h"

namespace lamella::vec {
inline namespace CPU_CAPABILITY {

template <class T, int N>
class VectorizedN {
 public:
  using value_type = T;
  using size_type = int;
  using Part = Vectorized<T>;
  static constexpr int size() { return N * Part::size(); }

  VectorizedN() = default;
  explicit VectorizedN(T value) { parts_.fill(Part(value)); }
  template <class... V>
    requires(sizeof...(V) == N && (std::is_same_v<V, Part> && ...))
  VectorizedN(const V&... parts) : parts_{parts...} {}  // NOLINT: implicit
  operator Part() const                                 // NOLINT
    requires(N == 1)
  {
    return parts_[0];
  }
  // f of each vector of the arguments.
  template <class F, class... A>
  static VectorizedN partwise(F&& f, const A&... a) {
    VectorizedN result;
    for (int i = 0; i < N; ++i) result.parts_[i] = f(a[i]...);
    return result;
  }
  // f(i) for each lane.
  template <class F>
  static VectorizedN lanewise(F&& f) {
    VectorizedN result;
    for (int i = 0; i < size(); ++i) result.lane(i) = f(i);
    return result;
  }

  const Part& operator[](int i) const { return parts_[i]; }
  Part& operator[](int i) { return parts_[i]; }
  const T& lane(int i) const { return parts_[i / Part::size()][i % Part::size()]; }
  T& lane(int i) { return parts_[i / Part::size()][i % Part::size()]; }
  // Loads the first `count` lanes; the others are 0.
  static VectorizedN loadu(const void* from, int64_t count = size()) {
    VectorizedN result;
    __builtin_memcpy(&result.lane(0), from, static_cast<size_t>(count) * sizeof(T));
    return result;
  }
  void store(void* to, int64_t count = size()) const {
    __builtin_memcpy(to, &lane(0), static_cast<size_t>(count) * sizeof(T));
  }
  static VectorizedN blendv(const VectorizedN& a, const VectorizedN& b, const VectorizedN& mask) {
    return partwise(&Part::blendv, a, b, mask);
  }
  static VectorizedN set(const VectorizedN& a, const VectorizedN& b, int64_t count = size()) {
    return lanewise([&](int i) { return i < count ? b.lane(i) : a.lane(i); });
  }

#define LAMELLA_VEC_FUNCTION(name)                                                       \
  template <class... A>                                                                  \
  VectorizedN name(const A&... other) const {                                            \
    return partwise([](const auto& x, const auto&... y) { return x.name(y...); }, *this, \
                    other...);                                                           \
  }
  LAMELLA_FOR_EACH(LAMELLA_VEC_FUNCTION, abs, neg, sgn, conj, real, imag, exp, exp2, expm1, exp_u20,
                   log, log2, log10, log1p, sin, cos, tan)
  LAMELLA_FOR_EACH(LAMELLA_VEC_FUNCTION, asin, acos, atan, atan2, sinh, cosh, tanh, asinh, acosh,
                   atanh, sqrt, rsqrt, reciprocal, erf, erfc, erfinv, lgamma)
  LAMELLA_FOR_EACH(LAMELLA_VEC_FUNCTION, ceil, floor, round, trunc, frac, pow, fmod, hypot,
                   nextafter, copysign, isnan, eq, ne, lt, le, gt, ge)
#undef LAMELLA_VEC_FUNCTION
#define LAMELLA_VEC_OPERATOR(op)                                                \
  friend VectorizedN operator op(const VectorizedN& a, const VectorizedN& b) {  \
    return partwise([](const Part& x, const Part& y) { return x op y; }, a, b); \
  }
  LAMELLA_FOR_EACH(LAMELLA_VEC_OPERATOR, +, -, *, /, &, |, ^, ==, !=, <, <=, >, >=, <<, >>)
#undef LAMELLA_VEC_OPERATOR
  VectorizedN operator~() const {
    return partwise([](const Part& x) { return ~x; }, *this);
  }

 private:
  std::array<Part, N> parts_;
};

#define LAMELLA_VEC_BINARY(name)                                                                   \
  template <class T, int N>                                                                        \
  VectorizedN<T, N> name(const VectorizedN<T, N>& a, const VectorizedN<T, N>& b) {                 \
    return VectorizedN<T, N>::partwise([](const auto& x, const auto& y) { return name(x, y); }, a, \
                                       b);                                                         \
  }
LAMELLA_FOR_EACH(LAMELLA_VEC_BINARY, maximum, minimum, clamp_min, clamp_max)
#undef LAMELLA_VEC_BINARY
#define LAMELLA_VEC_TERNARY(name)                                                            \
  template <class T, int N>                                                                  \
  VectorizedN<T, N> name(const VectorizedN<T, N>& a, const VectorizedN<T, N>& b,             \
                         const VectorizedN<T, N>& c) {                                       \
    return VectorizedN<T, N>::partwise(                                                      \
        [](const auto& x, const auto& y, const auto& z) { return name(x, y, z); }, a, b, c); \
  }
LAMELLA_FOR_EACH(LAMELLA_VEC_TERNARY, clamp, fmadd, fmsub, fnmadd)
#undef LAMELLA_VEC_TERNARY

template <class Stream, class T, int N>
  requires requires(Stream& out) { out.write("", 1); }
Stream& operator<<(Stream& out, const VectorizedN<T, N>& vectors) {
  out << "vec[";
  for (int i = 0; i < N; ++i) out << (i == 0 ? "" : ", ") << vectors[i];
  return out << "]", out;
}

// Lanes in another type: as many as both have; further ones are 0.
template <class To, int to_n, class From, int from_n>
VectorizedN<To, to_n> convert(const VectorizedN<From, from_n>& from) {
  return VectorizedN<To, to_n>::lanewise(
      [&](int i) { return i < from.size() ? static_cast<To>(from.lane(i)) : To(0); });
}
template <class To, class From>
Vectorized<To> convert(const Vectorized<From>& from) {
  return convert<To, 1, From, 1>(from);
}

template <class T, int N>
class VecMask {
 public:
  using size_type = int;
  static constexpr int size() { return VectorizedN<T, N>::size(); }

  // A lane is set where the value is not 0.
  template <class U, int L>
  static VecMask from(const VectorizedN<U, L>& values) {
    return lanewise([&](int i) { return i < values.size() && values.lane(i) != U(0); });
  }
  template <class U>
  static VecMask from(const U* values) {
    return lanewise([&](int i) { return values[i] != U(0); });
  }
  template <class U>
    requires std::is_arithmetic_v<U>
  static VecMask from(U value) {
    return lanewise([&](int) { return value != U(0); });
  }
  bool is_masked(int i) const { return lanes_[i]; }
  bool all_zero() const { return *this == VecMask(); }
  bool all_masked() const { return *this == from(1); }
  bool operator==(const VecMask&) const = default;
  template <class U, int L>
  VecMask<U, L> cast() const {
    return VecMask<U, L>::from(to<U, L>());
  }
  // Lanes that are set are 1, the others 0.
  template <class U, int L>
  VectorizedN<U, L> to() const {
    return VectorizedN<U, L>::lanewise([&](int i) { return U(i < size() && lanes_[i]); });
  }
  // The values of the lanes that are set; 0 in the others.
  template <class U, int L>
  VectorizedN<U, L> loadu(const U* from) const {
    return VectorizedN<U, L>::lanewise(
        [&](int i) { return i < size() && lanes_[i] ? from[i] : U(0); });
  }

 private:
  template <class F>
  static VecMask lanewise(F&& f) {
    VecMask mask;
    for (int i = 0; i < size(); ++i) mask.lanes_[i] = f(i);
    return mask;
  }
  bool lanes_[size()] = {};
};

}  // namespace CPU_CAPABILITY
}  // namespace lamella::vec
