// One number of a kernel as a kind of vectors, so that the CPU's elementary functions are the
// device's: Note [Kinds of vectors] in kernels/cpu/simd/vector_kinds.h. Numbers beside a lane are
// converted to its type first, as with vectors.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lamella/core/macros.h"
#include "lamella/cuda/kernels/functions.h"
// Headers that are marked for the device where nvcc compiles.
#include "lamella/kernels/cpu/simd/vector_kinds.h"

namespace lamella::cuda {

struct LaneMask {
  bool set;
  LAMELLA_DEVICE explicit operator bool() const { return set; }
  friend LAMELLA_DEVICE LaneMask operator&(LaneMask a, LaneMask b) { return {a.set && b.set}; }
  friend LAMELLA_DEVICE LaneMask operator|(LaneMask a, LaneMask b) { return {a.set || b.set}; }
  friend LAMELLA_DEVICE bool operator==(LaneMask a, LaneMask b) { return a.set == b.set; }
};

template <class T>
struct Lane {
  T v;
  Lane() = default;
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  LAMELLA_DEVICE Lane(N number) : v(static_cast<T>(number)) {}  // NOLINT: as numbers beside vectors
  // Integers wrap.
  using U =
      std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
#define LAMELLA_LANE(op)                                                     \
  friend LAMELLA_DEVICE Lane operator op(Lane a, Lane b) {                   \
    return Lane(static_cast<T>(static_cast<U>(a.v) op static_cast<U>(b.v))); \
  }                                                                          \
  LAMELLA_DEVICE Lane& operator op##=(Lane b) { return *this = *this op b; }
  LAMELLA_LANE(+)
  LAMELLA_LANE(-)
  LAMELLA_LANE(*)
  LAMELLA_LANE(/)
#undef LAMELLA_LANE
#define LAMELLA_LANE(op)                                   \
  friend LAMELLA_DEVICE Lane operator op(Lane a, Lane b) { \
    return Lane(static_cast<T>(a.v op b.v));               \
  }
  LAMELLA_LANE(&)
  LAMELLA_LANE(|)
  LAMELLA_LANE(^)
#undef LAMELLA_LANE
  friend LAMELLA_DEVICE Lane operator<<(Lane a, int by) {
    return Lane(static_cast<T>(static_cast<U>(a.v) << by));
  }
  friend LAMELLA_DEVICE Lane operator>>(Lane a, int by) { return Lane(static_cast<T>(a.v >> by)); }
  friend LAMELLA_DEVICE Lane operator~(Lane a) { return Lane(static_cast<T>(~a.v)); }
  friend LAMELLA_DEVICE Lane operator-(Lane a) {
    if constexpr (std::is_integral_v<T>) {
      return Lane(static_cast<T>(U{0} - static_cast<U>(a.v)));
    } else {
      return Lane(-a.v);
    }
  }
#define LAMELLA_LANE(op) \
  friend LAMELLA_DEVICE LaneMask operator op(Lane a, Lane b) { return {a.v op b.v}; }
  LAMELLA_LANE(<)
  LAMELLA_LANE(<=)
  LAMELLA_LANE(>)
  LAMELLA_LANE(>=)
  LAMELLA_LANE(==)
  LAMELLA_LANE(!=)
#undef LAMELLA_LANE
};

template <class To, class From>
LAMELLA_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace lamella::cuda

namespace lamella::native {
inline namespace CPU_CAPABILITY {

template <class I>
struct LaneTraits {
  using Mask = cuda::LaneMask;
  static LAMELLA_DEVICE cuda::Lane<I> select(Mask mask, cuda::Lane<I> a, cuda::Lane<I> b) {
    return mask.set ? a : b;
  }
  static LAMELLA_DEVICE Mask complement(Mask mask) { return {!mask.set}; }
};
template <>
struct VecTraits<cuda::Lane<int32_t>> : LaneTraits<int32_t> {
  using T = int32_t;
};
template <>
struct VecTraits<cuda::Lane<int64_t>> : LaneTraits<int64_t> {
  using T = int64_t;
};
template <class F, class I>
struct FloatLaneTraits : LaneTraits<F> {
  using T = F;
  using V = cuda::Lane<F>;
  using Int = cuda::Lane<I>;
  using Mask = cuda::LaneMask;
  using Bits = std::make_unsigned_t<I>;
  static constexpr int kMantissa = sizeof(F) == 4 ? 23 : 52;
  static constexpr int kBias = sizeof(F) == 4 ? 127 : 1023;
  static constexpr bool kHasFma = true;
  static LAMELLA_DEVICE V fma(V a, V b, V c) { return V(std::fma(a.v, b.v, c.v)); }
  static LAMELLA_DEVICE V sqrt(V x) { return V(cuda::root(x.v)); }
  static LAMELLA_DEVICE V abs(V x) { return V(std::fabs(x.v)); }
  static LAMELLA_DEVICE V copysign(V size, V sign) { return V(std::copysign(size.v, sign.v)); }
  static LAMELLA_DEVICE V at_most(V x, V bound) { return bound.v < x.v ? bound : x; }
  static LAMELLA_DEVICE V at_least(V x, V bound) { return x.v < bound.v ? bound : x; }
  static LAMELLA_DEVICE Int bits(V x) { return Int(cuda::bits_as<I>(x.v)); }
  static LAMELLA_DEVICE V from_bits(Int x) { return V(cuda::bits_as<F>(x.v)); }
  static LAMELLA_DEVICE Int shift_right(Int x, int by) {
    return Int(static_cast<I>(static_cast<Bits>(x.v) >> by));
  }
  static LAMELLA_DEVICE constexpr bool has_scaling() { return false; }
  static LAMELLA_DEVICE constexpr bool looks_up() { return true; }
  static LAMELLA_DEVICE V ldexp(V x, Rounded<V> n) { return v_ldexp_by_bits(x, n); }
  static LAMELLA_DEVICE Parts<V> frexp_of_log(V x) { return v_frexp_of_log_by_bits(x); }
  static LAMELLA_DEVICE Int entry(Int n, int first) {
    constexpr I kLast = 128 / sizeof(F) - 1;
    const I at = n.v - first;
    return Int(at < 0 ? I{0} : at > kLast ? kLast : at);
  }
  static LAMELLA_DEVICE V lookup(const F* table, Int entry) { return V(table[entry.v]); }
  static LAMELLA_DEVICE bool any(Mask mask) { return mask.set; }
  template <class W>
  static LAMELLA_DEVICE void if_any(Mask mask, const W& way) {
    if (mask.set) way(mask);
  }
};
template <>
struct VecTraits<cuda::Lane<double>> : FloatLaneTraits<double, int64_t> {
  static LAMELLA_DEVICE V gather(const double* table, Int index) { return V(table[index.v]); }
};
template <>
struct VecTraits<cuda::Lane<float>> : FloatLaneTraits<float, int32_t> {
  // One number is both halves of the lanes.
  struct Wide {
    cuda::Lane<double> low, high;
  };
  static LAMELLA_DEVICE Wide widen(V x) {
    return {cuda::Lane<double>(x.v), cuda::Lane<double>(x.v)};
  }
  static LAMELLA_DEVICE V narrow(Wide x) { return V(x.low.v); }
  static LAMELLA_DEVICE Int narrow(cuda::Lane<int64_t> low, cuda::Lane<int64_t>) {
    return Int(low.v);
  }
};

// What the functions ask vectors of registers for.
using VecF = cuda::Lane<float>;
using VecD = cuda::Lane<double>;
LAMELLA_DEVICE bool v_any(cuda::LaneMask mask) { return mask.set; }
template <class T>
LAMELLA_DEVICE cuda::LaneMask v_is_nan(cuda::Lane<T> x) {
  return {x.v != x.v};
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
