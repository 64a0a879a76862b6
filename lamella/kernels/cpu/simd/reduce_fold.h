// Building blocks of reduction loops: folding runs of memory in vectors.
//
// Note [Lanes of a fold]
//   A run is folded into granules of 64 bytes, whatever the width of the machine's vectors, so that
//   every capability gives the same bits: four granules side by side while the run lasts, then one,
//   then the rest with what came before it masked out. The lanes of the last granule are joined in
//   halves.
#pragma once
#include <cstring>
#include <limits>
#include <utility>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/reduce.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {

inline constexpr int kGranuleBytes = 64;

template <class T, int kBytes>
struct RawVector {
  typedef T type __attribute__((vector_size(kBytes)));
};
// Integers of the width of T.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class L>
struct Granule {
  using V = typename RawVector<L, kVecBytes>::type;
  using Bits = typename RawVector<BitsOf<L>, kVecBytes>::type;
  static constexpr int kParts = kGranuleBytes / kVecBytes;
  static constexpr int kLanes = kGranuleBytes / static_cast<int>(sizeof(L));
  static constexpr int kPartLanes = kVecBytes / static_cast<int>(sizeof(L));
  V part[kParts];
};

template <class L>
inline Granule<L> fill(L value) {
  Granule<L> g;
  for (auto& part : g.part) part = typename Granule<L>::V{} + value;
  return g;
}
template <class Op, class L>
inline Granule<L> join(const Granule<L>& a, const Granule<L>& b) {
  Granule<L> g;
  for (int i = 0; i < Granule<L>::kParts; ++i) g.part[i] = Op::join(a.part[i], b.part[i]);
  return g;
}
template <class Op, class L>
inline Granule<L> lift(const Granule<L>& a) {
  Granule<L> g;
  for (int i = 0; i < Granule<L>::kParts; ++i) g.part[i] = Op::lift(a.part[i]);
  return g;
}

// True if load() below reads float16 fast.
#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)
inline constexpr bool kReadsHalf = true;
#else
inline constexpr bool kReadsHalf = false;
#endif

// Loads as many elements at p as To has lanes, each converted. GCC 12 emits several instructions
// where the machine has one, so the instruction is named.
#if defined(CPU_CAPABILITY_AVX512)
// The masked forms, because GCC 12 warns about the plain ones.
#define LAMELLA_WIDE(name, x) _mm512_maskz_##name(-1, x)
#define LAMELLA_HALF_FLOATS(p) _mm256_loadu_ps(p)
#define LAMELLA_HALF(p) _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
#define LAMELLA_QUARTER(p) _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
#define LAMELLA_EIGHTH(p) _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))
#elif defined(CPU_CAPABILITY_AVX2)
#define LAMELLA_WIDE(name, x) _mm256_##name(x)
#define LAMELLA_HALF_FLOATS(p) _mm_loadu_ps(p)
#define LAMELLA_HALF(p) _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
#define LAMELLA_QUARTER(p) _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))
#define LAMELLA_EIGHTH(p) _mm_loadu_si32(p)
#endif
template <class To, class From>
inline typename Granule<To>::V widen(const From* p) {
  using V = typename Granule<To>::V;
#if defined(LAMELLA_WIDE)
  constexpr bool kSigned = std::is_signed_v<From>;
  if constexpr (std::is_same_v<To, double> && std::is_same_v<From, float>) {
    return (V)LAMELLA_WIDE(cvtps_pd, LAMELLA_HALF_FLOATS(p));
  } else if constexpr (sizeof(To) == 4 && sizeof(From) == 2) {
    return kSigned ? (V)LAMELLA_WIDE(cvtepi16_epi32, LAMELLA_HALF(p))
                   : (V)LAMELLA_WIDE(cvtepu16_epi32, LAMELLA_HALF(p));
  } else if constexpr (sizeof(To) == 4) {
    static_assert(sizeof(From) == 1);
    return kSigned ? (V)LAMELLA_WIDE(cvtepi8_epi32, LAMELLA_QUARTER(p))
                   : (V)LAMELLA_WIDE(cvtepu8_epi32, LAMELLA_QUARTER(p));
  } else if constexpr (sizeof(From) == 1) {
    return kSigned ? (V)LAMELLA_WIDE(cvtepi8_epi64, LAMELLA_EIGHTH(p))
                   : (V)LAMELLA_WIDE(cvtepu8_epi64, LAMELLA_EIGHTH(p));
  } else if constexpr (sizeof(From) == 2) {
    static_assert(kSigned);
    return (V)LAMELLA_WIDE(cvtepi16_epi64, LAMELLA_QUARTER(p));
  } else {
    static_assert(kSigned && sizeof(From) == 4);
    return (V)LAMELLA_WIDE(cvtepi32_epi64, LAMELLA_HALF(p));
  }
#else
  typename RawVector<From, Granule<To>::kPartLanes* static_cast<int>(sizeof(From))>::type x;
  std::memcpy(&x, p, sizeof(x));
  return __builtin_convertvector(x, V);
#endif
}

// The elements at p as lanes; they may be stored as another type.
template <class L, class In>
inline Granule<L> load(const In* p) {
  using G = Granule<L>;
  using V = typename G::V;
  G g;
  for (int i = 0; i < G::kParts; ++i) {
    const In* from = p + i * G::kPartLanes;
    if constexpr (std::is_same_v<In, StoredBool>) {
      auto* bytes = reinterpret_cast<const uint8_t*>(from);
      if constexpr (sizeof(L) == 1) {
        std::memcpy(&g.part[i], bytes, sizeof(V));
      } else {
        g.part[i] = widen<L>(bytes);
      }
      g.part[i] = (V)(g.part[i] != 0) & 1;
    } else if constexpr (std::is_same_v<In, BFloat16>) {
      g.part[i] = (V)(widen<BitsOf<L>>(reinterpret_cast<const uint16_t*>(from)) << 16);
    } else if constexpr (std::is_same_v<In, Half>) {
#if defined(LAMELLA_WIDE)
      g.part[i] = (V)LAMELLA_WIDE(cvtph_ps, LAMELLA_HALF(from));
#endif
    } else if constexpr (sizeof(In) == sizeof(L)) {
      std::memcpy(&g.part[i], from, sizeof(V));
    } else {
      g.part[i] = widen<L>(from);
    }
  }
  return g;
}
#undef LAMELLA_WIDE
#undef LAMELLA_HALF
#undef LAMELLA_HALF_FLOATS
#undef LAMELLA_QUARTER
#undef LAMELLA_EIGHTH

// The last `rest` lanes of g; the others become `value`.
template <class L>
inline Granule<L> keep_last(Granule<L> g, int64_t rest, L value) {
  alignas(64) static constexpr struct Masks {
    uint8_t bytes[2 * kGranuleBytes];
    constexpr Masks() : bytes() {
      for (int i = 0; i < kGranuleBytes; ++i) bytes[kGranuleBytes + i] = 0xff;
    }
  } masks;
  using Bits = typename Granule<L>::Bits;
  const uint8_t* from = masks.bytes + rest * static_cast<int64_t>(sizeof(L));
  const Granule<L> others = fill<L>(value);
  for (int i = 0; i < Granule<L>::kParts; ++i) {
    Bits mask;
    std::memcpy(&mask, from + i * kVecBytes, sizeof(mask));
    g.part[i] = (typename Granule<L>::V)(((Bits)g.part[i] & mask) | ((Bits)others.part[i] & ~mask));
  }
  return g;
}

// Lanes first ... of v.
template <int first, class V, int... i>
inline auto pick(V v, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(v, v, (first + i)...);
}
template <class Op, class L, int kBytes>
inline L join_lanes(typename RawVector<L, kBytes>::type v) {
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(L));
  if constexpr (kLanes == 1) {
    return v[0];
  } else if constexpr (kBytes > 16) {
    using Lanes = std::make_integer_sequence<int, kLanes / 2>;
    return join_lanes<Op, L, kBytes / 2>(
        Op::join(pick<0>(v, Lanes()), pick<kLanes / 2>(v, Lanes())));
  } else {
    alignas(16) L lanes[kLanes];
    std::memcpy(lanes, &v, sizeof(lanes));
    for (int w = kLanes / 2; w > 0; w /= 2) {
      for (int i = 0; i < w; ++i) lanes[i] = Op::join(lanes[i], lanes[i + w]);
    }
    return lanes[0];
  }
}
template <class Op, class L>
inline L join_lanes(Granule<L> g) {
  for (int w = Granule<L>::kParts / 2; w > 0; w /= 2) {
    for (int i = 0; i < w; ++i) g.part[i] = Op::join(g.part[i], g.part[i + w]);
  }
  return join_lanes<Op, L, kVecBytes>(g.part[0]);
}

template <class L, class In>
inline L read_one(const In& x) {
  if constexpr (std::is_same_v<In, StoredBool>) {
    return static_cast<L>(x ? 1 : 0);
  } else {
    return static_cast<L>(x);
  }
}

// Folds a run of n elements, at least a granule. Op has Lane, kIdentity, and lift(x) and join(a, b)
// for scalars and for vectors.
template <class Op, class In>
inline Granule<typename Op::Lane> fold_lanes(const In* x, int64_t n) {
  using L = typename Op::Lane;
  constexpr int64_t kLanes = Granule<L>::kLanes;
  auto next = [&](int64_t i) { return lift<Op>(load<L>(x + i)); };
  Granule<L> a = next(0);
  int64_t i = kLanes;
  if (n >= 4 * kLanes) {
    Granule<L> b = next(kLanes), c = next(2 * kLanes), d = next(3 * kLanes);
    for (i = 4 * kLanes; i + 4 * kLanes <= n; i += 4 * kLanes) {
      a = join<Op>(a, next(i));
      b = join<Op>(b, next(i + kLanes));
      c = join<Op>(c, next(i + 2 * kLanes));
      d = join<Op>(d, next(i + 3 * kLanes));
    }
    a = join<Op>(join<Op>(a, c), join<Op>(b, d));
  }
  for (; i + kLanes <= n; i += kLanes) a = join<Op>(a, next(i));
  if (i < n) a = join<Op>(a, keep_last<L>(next(n - kLanes), n - i, Op::kIdentity));
  return a;
}
template <class Op, class In>
inline typename Op::Lane fold(const In* x, int64_t n) {
  using L = typename Op::Lane;
  if (n >= Granule<L>::kLanes) return join_lanes<Op>(fold_lanes<Op>(x, n));
  L total = Op::kIdentity;
  for (int64_t i = 0; i < n; ++i) total = Op::join(total, L(Op::lift(read_one<L>(x[i]))));
  return total;
}
// Folds contiguous rows that have fewer elements than a granule has lanes. In groups of as many
// granules as a row has elements, each lane always has the same element of a row.
template <class Op, class In>
void fold_short_rows(typename Op::Lane* acc, const In* x, int64_t n, int64_t count) {
  using L = typename Op::Lane;
  constexpr int64_t kLanes = Granule<L>::kLanes;
  Granule<L> g[kLanes];
  for (int64_t k = 0; k < n; ++k) g[k] = fill<L>(Op::kIdentity);
  int64_t r = 0;
  for (; r + kLanes <= count; r += kLanes, x += n * kLanes) {
    for (int64_t k = 0; k < n; ++k) g[k] = join<Op>(g[k], lift<Op>(load<L>(x + k * kLanes)));
  }
  L lanes[kLanes * kLanes];
  std::memcpy(lanes, g, static_cast<size_t>(n) * sizeof(g[0]));
  for (int64_t i = 0; i < kLanes; ++i) {
    for (int64_t k = 0; k < n; ++k) acc[k] = Op::join(acc[k], lanes[i * n + k]);
  }
  for (; r < count; ++r, x += n) {
    for (int64_t k = 0; k < n; ++k) acc[k] = Op::join(acc[k], L(Op::lift(read_one<L>(x[k]))));
  }
}
// Folds element j of each row into acc[j].
template <class Op, class In>
void fold_rows(typename Op::Lane* acc, const ReduceInput& in) {
  using L = typename Op::Lane;
  constexpr int64_t kLanes = Granule<L>::kLanes;
  auto row = [&](int64_t r) {
    return reinterpret_cast<const In*>(static_cast<const char*>(in.data) + r * in.stride);
  };
  if constexpr (std::is_floating_point_v<In>) {
    if (in.n < kLanes && in.stride == in.n * static_cast<int64_t>(sizeof(In)) &&
        in.count >= 2 * kLanes) {
      return fold_short_rows<Op>(acc, row(0), in.n, in.count);
    }
  }
  int64_t j = 0;
  auto strip = [&]<int kGranules>(std::integral_constant<int, kGranules>) {
    for (; j + kGranules * kLanes <= in.n; j += kGranules * kLanes) {
      Granule<L> g[kGranules];
      for (int k = 0; k < kGranules; ++k) g[k] = load<L>(acc + j + k * kLanes);
      for (int64_t r = 0; r < in.count; ++r) {
        const In* x = row(r) + j;
        for (int k = 0; k < kGranules; ++k) {
          g[k] = join<Op>(g[k], lift<Op>(load<L>(x + k * kLanes)));
        }
      }
      for (int k = 0; k < kGranules; ++k) std::memcpy(acc + j + k * kLanes, &g[k], sizeof(g[k]));
    }
  };
  strip(std::integral_constant<int, 4>());
  strip(std::integral_constant<int, 1>());
  if (j < in.n && in.n >= kLanes) {
    // The last granule overlaps elements that were folded already; they are replaced by the
    // identity.
    const int64_t at = in.n - kLanes;
    Granule<L> g = load<L>(acc + at);
    for (int64_t r = 0; r < in.count; ++r) {
      g = join<Op>(g, keep_last<L>(lift<Op>(load<L>(row(r) + at)), in.n - j, Op::kIdentity));
    }
    std::memcpy(acc + at, &g, sizeof(g));
    return;
  }
  for (int64_t r = 0; r < in.count; ++r) {
    const In* x = row(r);
    for (int64_t k = j; k < in.n; ++k) {
      acc[k] = Op::join(acc[k], L(Op::lift(read_one<L>(x[k]))));
    }
  }
}

// ---- Folds that several reductions share ----

template <class L>
struct Sum {
  using Lane = L;
  static constexpr L kIdentity = 0;
  template <class X>
  static X lift(X x) {
    return x;
  }
  template <class X>
  static X join(X a, X b) {
    return a + b;
  }
};
// The larger or smaller of two numbers that are not NaN; NaN affects only its own lane.
template <class L, bool kLargest>
struct Ordered {
  using Lane = L;
  static constexpr bool kFraction = std::is_floating_point_v<L>;
  using Limits = std::numeric_limits<L>;
  static constexpr L kIdentity = kFraction  ? (kLargest ? -Limits::infinity() : Limits::infinity())
                                 : kLargest ? Limits::lowest()
                                            : Limits::max();
  template <class X>
  static X lift(X x) {
    return x;
  }
  template <class X>
  static X join(X a, X b) {
    if constexpr (kLargest) {
      return b > a ? b : a;
    } else {
      return b < a ? b : a;
    }
  }
};
// The same, with NaN if either is NaN.
template <class L, bool kLargest>
struct Extreme : Ordered<L, kLargest> {
  template <class X>
  static X join(X a, X b) {
    X picked = Ordered<L, kLargest>::join(a, b);
    if constexpr (std::is_floating_point_v<L>) {
      return b != b ? b : picked;
    } else {
      return picked;
    }
  }
};
// ---- Tables ----

// Calls f(j, line) for each line.
template <class In, class F>
inline void each_line(const ReduceInput& in, F&& f) {
  auto* p = static_cast<const char*>(in.data);
  for (int64_t j = 0; j < in.count; ++j) {
    f(j, reinterpret_cast<const In*>(p));
    p += in.stride;
  }
}
// Folds lines; Op's lanes are the accumulators.
template <class Op, class In>
void along_lanes(void* acc, const ReduceInput& in) {
  using L = typename Op::Lane;
  auto* a = static_cast<L*>(acc);
  // Lines of three elements, such as points and colours, are folded side by side.
  if constexpr (std::is_floating_point_v<In>) {
    if (in.n == 3 && in.stride == 3 * static_cast<int64_t>(sizeof(In))) {
      auto* x = static_cast<const In*>(in.data);
#pragma GCC ivdep
      for (int64_t j = 0; j < in.count; ++j) {
        L first = Op::lift(read_one<L>(x[3 * j])), second = Op::lift(read_one<L>(x[3 * j + 1]));
        L third = Op::lift(read_one<L>(x[3 * j + 2]));
        a[j] = Op::join(a[j], Op::join(Op::join(first, second), third));
      }
      return;
    }
  }
  each_line<In>(in, [&](int64_t j, const In* x) { a[j] = Op::join(a[j], fold<Op>(x, in.n)); });
}
template <class Op, class In>
void across_lanes(void* acc, const ReduceInput& in) {
  fold_rows<Op, In>(static_cast<typename Op::Lane*>(acc), in);
}
template <class Op>
void init_lanes(void* acc, int64_t n) {
  auto* a = static_cast<typename Op::Lane*>(acc);
  for (int64_t j = 0; j < n; ++j) a[j] = Op::kIdentity;
}
template <class Op>
void merge_lanes(void* acc, const void* other, int64_t n) {
  auto* a = static_cast<typename Op::Lane*>(acc);
  auto* b = static_cast<const typename Op::Lane*>(other);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) a[j] = Op::join(a[j], b[j]);
}
// Stores the accumulators as Out.
template <class L, class Out>
void finish_same(const void* acc, void* out, int64_t n, const void*) {
  auto* a = static_cast<const L*>(acc);
  auto* to = static_cast<Out*>(out);
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<Out>(a[j]);
}
// Loops for T whose accumulators are Op's lanes.
template <class Op, class T>
constexpr ReduceLoops lane_loops() {
  return {sizeof(typename Op::Lane),
          &init_lanes<Op>,
          &along_lanes<Op, Stored<T>>,
          &across_lanes<Op, Stored<T>>,
          &merge_lanes<Op>,
          &finish_same<typename Op::Lane, T>,
          nullptr,
          CppTypeToScalarType<T>::value};
}
// The index of T's loops in a table.
template <class T>
constexpr int slot_of() {
  return loop_index(CppTypeToScalarType<T>::value);
}

#define LAMELLA_REGISTER_REDUCE(name, make)                                                       \
  const ReduceTable& name##_reduce() {                                                            \
    static constexpr ReduceTable table = make;                                                    \
    return table;                                                                                 \
  }                                                                                               \
  const RegisterKernel name##_registered(named_kernel<reduce_fn, #name>, LAMELLA_THIS_CAPABILITY, \
                                         &name##_reduce)

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
