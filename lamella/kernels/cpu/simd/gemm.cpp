// Matrix products of float32, float64, int32 and int64, and of bfloat16 with sums of float32.
#include "lamella/kernels/cpu/simd/gemm.h"

#include "lamella/kernels/cpu/simd/gemm_tile.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class P>
constexpr GemmKernels kernels_of(int64_t group, void (*dots)(const GemmDots&),
                                 void (*pack)(const GemmPacking&)) {
  using S = typename P::Sum;
  auto bytes = static_cast<int64_t>(sizeof(typename P::Element)) / group;
  void (*parts)(const GemmSmall&) = nullptr;
  if constexpr (kReadsParts && std::is_same_v<S, typename P::Element>) parts = &small<P>;
  return {
      kTileVectors * kLanes<S>, kLanes<S>, group, bytes, sizeof(S), &block<P>, parts, dots, pack};
}
template <class T>
constexpr GemmKernels kernels_of(void (*dots)(const GemmDots&)) {
  return kernels_of<SameType<T>>(1, dots, &pack<T>);
}

#if defined(CPU_CAPABILITY_AVX512)
// Elements are pairs of bfloat16, whose products are added to a sum in float32.
struct BFloat16Pairs {
  using Element = uint32_t;
  using Sum = float;
  static constexpr bool kFetches = true;
  static Lanes<float> multiply_add(Lanes<uint32_t> a, Lanes<uint32_t> b, Lanes<float> c) {
    // The intrinsic would need this file to be compiled for processors that have the instruction.
    asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
};

void pack_pairs(const GemmPacking& p) {
  constexpr int64_t kColumns = kTileVectors * kLanes<float>, kBytes = sizeof(uint32_t);
  if (p.row * 2 == kBytes) {
    // Both numbers of a pair are adjacent.
    GemmPacking pairs = p;
    pairs.row = kBytes;
    return pack<uint32_t>(pairs);
  }
  char* to = p.to;
  for (int64_t j = 0; j < p.n; j += kLanes<float>) {
    // The panel of column j, and the column's position in it.
    int64_t first = j / kColumns * kColumns;
    int64_t width = p.n - first < kColumns ? p.n - first : kColumns;
    int64_t padded = (width + kLanes<float> - 1) / kLanes<float> * kLanes<float>;
    bool is_panel = p.to_row == 0;
    char* out = to + (is_panel ? first * p.k + (j - first) : j) * kBytes;
    int64_t to_row = is_panel ? padded * kBytes : p.to_row;
    auto mask = static_cast<__mmask16>(p.n - j < kLanes<float> ? (1u << (p.n - j)) - 1 : 0xffff);
    const char* even = p.b + j * p.column;
    for (int64_t l = 0; l < p.k; ++l, even += 2 * p.row, out += to_row) {
      // The forms with a mask have no undefined operand, of which GCC 12 would warn.
      constexpr __mmask16 kAll = 0xffff;
      __m512i low = _mm512_maskz_cvtepu16_epi32(kAll, _mm256_maskz_loadu_epi16(mask, even));
      __m512i high =
          _mm512_maskz_cvtepu16_epi32(kAll, _mm256_maskz_loadu_epi16(mask, even + p.row));
      _mm512_storeu_si512(out, _mm512_or_si512(low, _mm512_maskz_slli_epi32(kAll, high, 16)));
    }
  }
}
#endif

#if defined(CPU_CAPABILITY_AVX2)
// Elements of int64 that fit int32, whose products are one instruction.
struct NarrowLongs : SameType<uint64_t> {
  static Lanes<uint64_t> multiply_add(Lanes<uint64_t> a, Lanes<uint64_t> b, Lanes<uint64_t> c) {
    return reinterpret_cast<Lanes<uint64_t>>(
               _mm256_mul_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b))) +
           c;
  }
};

// Whether elements [0, n) at p fit int32, each `step` bytes after the one before.
bool are_narrow(const char* p, int64_t step, int64_t n) {
  uint64_t seen = 0;
  auto see = [&](const char* at) {
    uint64_t x;
    std::memcpy(&x, at, sizeof(x));
    seen |= x + (uint64_t{1} << 31);
  };
  if (step == sizeof(uint64_t)) {
    for (int64_t i = 0; i < n; ++i) see(p + i * static_cast<int64_t>(sizeof(uint64_t)));
  } else {
    for (int64_t i = 0; i < n; ++i) see(p + i * step);
  }
  return seen >> 32 == 0;
}
bool is_narrow(const GemmBlock& g) {
  constexpr int64_t kColumns = kTileVectors * kLanes<uint64_t>, kBytes = sizeof(uint64_t);
  for (int64_t i = 0; i < g.m; ++i) {
    if (!are_narrow(g.a + i * g.a_row, g.a_step, g.k)) return false;
  }
  for (int64_t j = 0; j < g.n; j += kColumns) {
    const bool is_tail = g.n - j < kColumns;
    const char* b = is_tail ? g.tail : g.b + j / kColumns * g.b_panel;
    for (int64_t l = 0; l < g.k; ++l, b += is_tail ? g.tail_row : g.b_row) {
      if (!are_narrow(b, kBytes, is_tail ? g.n - j : kColumns)) return false;
    }
  }
  return true;
}
void block_of_longs(const GemmBlock& g) {
  if (g.m >= kTileRows && is_narrow(g)) return block<NarrowLongs>(g);
  block<SameType<uint64_t>>(g);
}
#endif

const GemmKernels* gemm_kernels(ScalarType dtype) {
  static constexpr GemmKernels floats = kernels_of<float>(&dots<SameType<float>>);
  static constexpr GemmKernels doubles = kernels_of<double>(&dots<SameType<double>>);
  static constexpr GemmKernels ints = kernels_of<uint32_t>(nullptr);
  static constexpr GemmKernels longs = [] {
    GemmKernels all = kernels_of<uint64_t>(nullptr);
#if defined(CPU_CAPABILITY_AVX2)
    all.block = &block_of_longs;
#endif
    return all;
  }();
  switch (dtype) {
    case kFloat:
      return &floats;
    case kDouble:
      return &doubles;
    case kInt:
      return &ints;
    case kLong:
      return &longs;
    default:
      break;
  }
#if defined(CPU_CAPABILITY_AVX512)
  static constexpr GemmKernels pairs =
      kernels_of<BFloat16Pairs>(2, &dots<BFloat16Pairs>, &pack_pairs);
  if (dtype == kBFloat16 && __builtin_cpu_supports("avx512bf16")) return &pairs;
#endif
  return nullptr;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(gemm_kernels_on, &gemm_kernels);

}  // namespace lamella::native
