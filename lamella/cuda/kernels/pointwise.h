// Pointwise kernels, in C++ that nvcc compiles for a GPU and g++ for the stand-in of tests/cuda.
//
// Note [One kernel for a function and a type]
//   A kernel computes in one type. It reads operands of any dtype that promotes to it, contiguous,
//   strided or broadcast, and converts them itself; float16 and bfloat16 are computed as float,
//   bool and integers of up to 32 bits as int32, whose results wrap when they are stored. All
//   arithmetic is IEEE's without contraction, so results equal the CPU's bit for bit.
//
// Note [Vectors of a thread]
//   A thread computes kElements elements at a time. Where the innermost dimension of each operand
//   is contiguous or broadcast and aligned, they are neighbours, read by loads of up to 16 bytes.
//   Elsewhere they are 32 apart, so that the threads of a warp read neighbours. The host divides
//   operands until offsets fit 32 bits; the index of a dimension comes from a multiplication
//   instead of a division (T. Granlund, P. Montgomery, Division by invariant integers using
//   multiplication, 1994).
#pragma once
#include <cstdint>
#include <type_traits>

#include "lamella/core/complex.h"
#include "lamella/core/half.h"
#include "lamella/cuda/kernels/device.h"
#include "lamella/cuda/kernels/pointwise_parameters.h"

#ifdef __CUDACC__
#define LAMELLA_DEVICE_CALLED __device__ __noinline__
#define LAMELLA_LOOP _Pragma("unroll 1")
#else
#define LAMELLA_DEVICE_CALLED inline
#define LAMELLA_LOOP
#endif

namespace lamella::cuda {

// ---- Conversion ----

// Small types as they are stored.
struct StoredHalf {
  uint16_t bits;
};
struct StoredBFloat16 {
  uint16_t bits;
};
struct StoredBool {
  uint8_t bits;
};
LAMELLA_DEVICE float widened(StoredHalf x) {
#ifdef __CUDACC__
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
#else
  return Half::Format::decode(x.bits);
#endif
}
LAMELLA_DEVICE float widened(StoredBFloat16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}
LAMELLA_DEVICE StoredHalf narrowed_half(float x) {
#ifdef __CUDACC__
  StoredHalf result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  return {static_cast<uint16_t>(Half::Format::encode(x))};
#endif
}

// Out of range, as x86 converts: the least integer.
template <class F>
LAMELLA_DEVICE int32_t whole32(F x) {
  return x >= F(-2147483648.0) && x < F(2147483648.0) ? static_cast<int32_t>(x) : INT32_MIN;
}
template <class F>
LAMELLA_DEVICE int64_t whole64(F x) {
  constexpr F kEnd = F(9223372036854775808.0);
  return x >= -kEnd && x < kEnd ? static_cast<int64_t>(x) : INT64_MIN;
}
template <class F>
LAMELLA_DEVICE uint64_t whole_unsigned(F x) {
  if (!(x >= F(9223372036854775808.0))) return static_cast<uint64_t>(whole64(x));
  return x < F(18446744073709551616.0) ? static_cast<uint64_t>(x) : UINT64_MAX;
}

template <class T>
constexpr Kind kind_of() {
  if constexpr (is_complex_type_v<T>) return sizeof(T) == 8 ? kC64 : kC128;
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? kF32 : kF64;
  if constexpr (std::is_same_v<T, bool>) return kBool;
  return sizeof(T) == 4 ? kI32 : std::is_signed_v<T> ? kI64 : kU64;
}

// An element of type S as the type of a kernel.
template <class T, class S>
LAMELLA_DEVICE T converted(S x) {
  if constexpr (std::is_same_v<T, S>) {
    return x;
  } else if constexpr (std::is_same_v<S, StoredBool>) {
    return converted<T>(static_cast<int32_t>(x.bits != 0));
  } else if constexpr (std::is_same_v<S, StoredHalf> || std::is_same_v<S, StoredBFloat16>) {
    return converted<T>(widened(x));
  } else if constexpr (std::is_same_v<T, bool>) {
    return static_cast<bool>(x);
  } else if constexpr (is_complex_type_v<T>) {
    using R = typename T::value_type;
    if constexpr (is_complex_type_v<S>) {
      return T(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    } else {
      return T(static_cast<R>(x));
    }
  } else if constexpr (is_complex_type_v<S>) {
    return converted<T>(x.real());
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<T>) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      return whole_unsigned(x);
    } else if constexpr (sizeof(T) == 8) {
      return whole64(x);
    } else {
      return whole32(x);
    }
  } else {
    return static_cast<T>(x);
  }
}

// Calls f(S{}) for the type S of stored elements. With `Any` every kind, else those that kernels of
// T read by vectors: natural() in pointwise_parameters.h.
template <class T, bool Any, class F>
LAMELLA_DEVICE void visit_kind(Kind kind, const F& f) {
#define LAMELLA_KIND(name, S)                                 \
  case name:                                                  \
    if constexpr (Any || natural(kind_of<T>(), name)) f(S{}); \
    return;
  switch (kind) {
    LAMELLA_KIND(kBool, StoredBool)
    LAMELLA_KIND(kU8, uint8_t)
    LAMELLA_KIND(kI8, int8_t)
    LAMELLA_KIND(kI16, int16_t)
    LAMELLA_KIND(kI32, int32_t)
    LAMELLA_KIND(kI64, int64_t)
    LAMELLA_KIND(kF32, float)
    LAMELLA_KIND(kF64, double)
    LAMELLA_KIND(kF16, StoredHalf)
    LAMELLA_KIND(kBF16, StoredBFloat16)
    LAMELLA_KIND(kU16, uint16_t)
    LAMELLA_KIND(kU32, uint32_t)
    LAMELLA_KIND(kU64, uint64_t)
    LAMELLA_KIND(kC64, complex<float>)
    LAMELLA_KIND(kC128, complex<double>)
  }
#undef LAMELLA_KIND
}

template <class T>
LAMELLA_DEVICE_CALLED T read_any(const char* from, Kind kind) {
  T result{};
  visit_kind<T, true>(kind, [&](auto stored) {
    result = converted<T>(*reinterpret_cast<const decltype(stored)*>(from));
  });
  return result;
}
// An element of any kind.
template <class T, bool Any = false>
LAMELLA_DEVICE T read(const char* from, Kind kind) {
  if constexpr (std::is_same_v<T, bool> && Any) {
    return read_any<T>(from, kind);
  } else if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const uint8_t*>(from) != 0;
  } else {
    if (kind == kind_of<T>()) return *reinterpret_cast<const T*>(from);
    return read_any<T>(from, kind);
  }
}

// A result of type R as the stored type S.
template <class S, class R>
LAMELLA_DEVICE S stored_as(R x) {
  if constexpr (std::is_same_v<S, R>) {
    return x;
  } else if constexpr (std::is_same_v<S, StoredBool>) {
    return {static_cast<uint8_t>(x != R(0))};
  } else if constexpr (std::is_same_v<S, StoredHalf>) {
    return narrowed_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<S, StoredBFloat16>) {
    return {static_cast<uint16_t>(BFloat16::Format::encode(static_cast<float>(x)))};
  } else {
    return static_cast<S>(x);
  }
}
// Calls f(S{}) for a type that results of type R are stored as; integers by their size.
template <class R, class F>
LAMELLA_DEVICE void visit_result(Kind kind, const F& f) {
  if constexpr (std::is_same_v<R, bool>) {
    f(StoredBool{});
  } else if constexpr (std::is_same_v<R, float>) {
    if (kind == kF32) return f(float{});
    if (kind == kBF16) return f(StoredBFloat16{});
    f(StoredHalf{});
  } else if constexpr (std::is_integral_v<R>) {
    switch (kind) {
      case kBool:
        return f(StoredBool{});
      case kU8:
      case kI8:
        return f(uint8_t{});
      case kI16:
      case kU16:
        return f(uint16_t{});
      case kI32:
      case kU32:
        return f(uint32_t{});
      default:
        if constexpr (sizeof(R) == 8) f(R{});
        return;
    }
  } else {
    f(R{});
  }
}

template <class R>
LAMELLA_DEVICE void write(char* to, Kind kind, R value) {
  visit_result<R>(kind, [&](auto stored) {
    using S = decltype(stored);
    *reinterpret_cast<S*>(to) = stored_as<S>(value);
  });
}
// Writes a real number as an element of any real kind.
template <class T>
LAMELLA_DEVICE void write_as(char* to, Kind kind, T value) {
  visit_kind<T, true>(kind, [&](auto stored) {
    using S = decltype(stored);
    if constexpr (!is_complex_type_v<S>) *reinterpret_cast<S*>(to) = stored_as<S>(value);
  });
}
// The bytes of an element of a real kind. Two bits of the number are the logarithm for each kind.
LAMELLA_DEVICE int64_t bytes_of(Kind kind) { return int64_t{1} << (0x395ee40 >> 2 * kind & 3); }

// ---- Functions ----

template <class F, class T>
struct FirstOf {
  using type = T;
};
template <class F, class T>
  requires requires { typename F::First; }
struct FirstOf<F, T> {
  using type = typename F::First;  // of the first operand: a condition
};
// Elements of a thread at a time: 32 bytes of an operand, or 16 of functions that are long.
template <class F, class T>
constexpr int elements_of() {
  constexpr int kBytes = requires { F::kIsLong; } ? 16 : 32;
  constexpr int kElements = kBytes / static_cast<int>(sizeof(T));
  return kElements < 8 ? kElements : 8;
}
template <class F>
inline constexpr bool reads_any = requires { F::kReadsAny; };

template <class S, int E>
struct alignas(sizeof(S) * E < 16 ? sizeof(S) * E : 16) Pack {
  S at[E];
};

// The place of an element in an operand, in bytes.
template <int N>
LAMELLA_DEVICE void offsets_of(const PointwiseParameters& p, uint32_t element, int32_t (&to)[N]) {
  if (p.ndim <= 1) {
    LAMELLA_UNROLL
    for (int k = 0; k < N; ++k) to[k] = static_cast<int32_t>(element) * p.operands[k].strides[0];
    return;
  }
  LAMELLA_UNROLL
  for (int k = 0; k < N; ++k) to[k] = 0;
  for (int d = 0; d < p.ndim - 1; ++d) {
    const Divisor by = p.divisors[d];
    const uint64_t high = (static_cast<uint64_t>(element) * by.multiplier) >> 32;
    const uint32_t next = (static_cast<uint32_t>(high) + element) >> by.shift;
    const auto at = static_cast<int32_t>(element - next * p.sizes[d]);
    LAMELLA_UNROLL
    for (int k = 0; k < N; ++k) to[k] += at * p.operands[k].strides[d];
    element = next;
  }
  const int last = p.ndim - 1;
  LAMELLA_UNROLL
  for (int k = 0; k < N; ++k) to[k] += static_cast<int32_t>(element) * p.operands[k].strides[last];
}

template <class T, bool Any, int E>
LAMELLA_DEVICE void load(const PointwiseOperand& from, int32_t offset, T (&to)[E]) {
  const char* memory = memory_at(from.data) + offset;
  if (from.strides[0] == 0) {
    const T one = read<T, Any>(memory, from.kind);
    LAMELLA_UNROLL
    for (int e = 0; e < E; ++e) to[e] = one;
    return;
  }
  if constexpr (std::is_same_v<T, bool> && !Any) {
    const auto pack = *reinterpret_cast<const Pack<StoredBool, E>*>(memory);
    LAMELLA_UNROLL
    for (int e = 0; e < E; ++e) to[e] = pack.at[e].bits != 0;
  } else {
    visit_kind<T, Any>(from.kind, [&](auto stored) {
      const auto pack = *reinterpret_cast<const Pack<decltype(stored), E>*>(memory);
      LAMELLA_UNROLL
      for (int e = 0; e < E; ++e) to[e] = converted<T>(pack.at[e]);
    });
  }
}

// The elements of one thread of `threads`: F(parameters)(a, b, c).
template <class F, class T, int N>
LAMELLA_DEVICE void pointwise(const PointwiseParameters& p, int64_t thread, int64_t threads) {
  using First = typename FirstOf<F, T>::type;
  constexpr int E = elements_of<F, T>(), kOthers = N > 1 ? N - 1 : 1;
  const F function(p);
  auto result_of = [&](First a, const T* b) {
    if constexpr (N == 1) {
      return function(a);
    } else if constexpr (N == 2) {
      return function(a, b[0]);
    } else {
      return function(a, b[0], b[1]);
    }
  };
  // What promotion made of a result, such as the int of bool | bool, would be stored too wide.
  using R = decltype(result_of(First{}, nullptr));
  static_assert(std::is_same_v<R, T> || std::is_same_v<R, bool> || is_complex_type_v<T>);

  First first{};  // a number, or the element of each step
  T others[kOthers] = {};
  auto read_into = [&](auto& to, int k, const char* from) {
    using S = std::remove_reference_t<decltype(to)>;
    to = read<S, reads_any<F>>(from, p.operands[k].kind);
  };
  if (p.operands[1].data == 0) read_into(first, 1, p.numbers[1]);
  LAMELLA_UNROLL
  for (int k = 2; k <= N; ++k) {
    if (p.operands[k].data == 0) read_into(others[k - 2], k, p.numbers[k]);
  }
  char* out = const_cast<char*>(memory_at(p.operands[0].data));
  const Kind kind = p.operands[0].kind;
  const uint32_t pieces = (p.numel + 32 * E - 1) / (32 * E) * 32;
  for (auto piece = static_cast<uint32_t>(thread); piece < pieces;
       piece += static_cast<uint32_t>(threads)) {
    int32_t offsets[N + 1];
    if (p.vectors != 0 && (piece + 1) * E <= p.numel) {
      offsets_of(p, piece * E, offsets);
      First a[E];
      T b[kOthers][E];
      LAMELLA_UNROLL
      for (int e = 0; e < E; ++e) a[e] = first;
      if (p.operands[1].data != 0) load<First, reads_any<F>>(p.operands[1], offsets[1], a);
      LAMELLA_UNROLL
      for (int k = 2; k <= N; ++k) {
        LAMELLA_UNROLL
        for (int e = 0; e < E; ++e) b[k - 2][e] = others[k - 2];
        if (p.operands[k].data != 0) load<T, false>(p.operands[k], offsets[k], b[k - 2]);
      }
      R results[E];
      LAMELLA_UNROLL
      for (int e = 0; e < E; ++e) {
        const T of_element[] = {b[0][e], b[kOthers - 1][e]};
        results[e] = result_of(a[e], of_element);
      }
      visit_result<R>(kind, [&](auto stored) {
        using S = decltype(stored);
        Pack<S, E> pack;
        LAMELLA_UNROLL
        for (int e = 0; e < E; ++e) pack.at[e] = stored_as<S>(results[e]);
        *reinterpret_cast<Pack<S, E>*>(out + offsets[0]) = pack;
      });
      continue;
    }
    uint32_t element = p.vectors != 0 ? piece * E : (piece & ~31u) * E + (piece & 31u);
    LAMELLA_LOOP
    for (int e = 0; e < E && element < p.numel; ++e, element += p.vectors != 0 ? 1 : 32) {
      offsets_of(p, element, offsets);
      if (p.operands[1].data != 0) {
        read_into(first, 1, memory_at(p.operands[1].data) + offsets[1]);
      }
      LAMELLA_UNROLL
      for (int k = 2; k <= N; ++k) {
        if (p.operands[k].data == 0) continue;
        read_into(others[k - 2], k, memory_at(p.operands[k].data) + offsets[k]);
      }
      write(out + offsets[0], kind, result_of(first, others));
    }
  }
}

}  // namespace lamella::cuda
