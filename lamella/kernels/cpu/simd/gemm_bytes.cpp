// Matrix products of bytes with sums of int32, all exact modulo 2^32.
//
// Note [Products of bytes]
//   The processor multiplies four unsigned bytes with four signed ones and adds the products to a
//   lane of int32. If both operands are signed, 128 is added to the bytes of b when they are packed
//   (or read): each row of the result is then too large by 128 times the sum of its row of a, which
//   the caller subtracts through d. Without that instruction pairs of int16 are multiplied.
#include "lamella/kernels/cpu/simd/gemm_tile.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

#if defined(__x86_64__)
template <class P>
constexpr GemmKernels kernels_of(int64_t group, void (*dots)(const GemmDots&),
                                 void (*pack)(const GemmPacking&)) {
  using S = typename P::Sum;
  return {kTileVectors * kLanes<S>,
          kLanes<S>,
          group,
          4 / group,
          sizeof(S),
          &block<P>,
          nullptr,
          dots,
          pack};
}

// Elements are pairs of int16, whose products are added to a sum in int32.
struct ShortPairs {
  using Element = uint32_t;
  using Sum = uint32_t;
  static constexpr bool kFetches = false;
  static Lanes<uint32_t> multiply_add(Lanes<uint32_t> a, Lanes<uint32_t> b, Lanes<uint32_t> c) {
#if defined(CPU_CAPABILITY_AVX512)
    return (Lanes<uint32_t>)_mm512_madd_epi16((__m512i)a, (__m512i)b) + c;
#elif defined(CPU_CAPABILITY_AVX2)
    return (Lanes<uint32_t>)_mm256_madd_epi16((__m256i)a, (__m256i)b) + c;
#else
    return (Lanes<uint32_t>)_mm_madd_epi16((__m128i)a, (__m128i)b) + c;
#endif
  }
};
#endif

#if defined(CPU_CAPABILITY_AVX512)
constexpr uint32_t kHighBits = 0x80808080;

// Elements are groups of four bytes; those of b are unsigned if BIsUnsigned, else those of a.
// `Turned` adds 128 to b.
template <bool BIsUnsigned, bool Turned>
struct ByteFours {
  using Element = uint32_t;
  using Sum = uint32_t;
  static constexpr bool kFetches = true;
  static Lanes<uint32_t> multiply_add(Lanes<uint32_t> a, Lanes<uint32_t> b, Lanes<uint32_t> c) {
    if constexpr (Turned) b ^= broadcast(kHighBits);
    // The intrinsic would need this file to be compiled for processors that have the instruction.
    if constexpr (BIsUnsigned) {
      asm("vpdpbusd %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));
    } else {
      asm("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    }
    return c;
  }
};

template <bool Turn>
void pack_fours(const GemmPacking& p) {
  constexpr int64_t kColumns = kTileVectors * kLanes<uint32_t>, kBytes = sizeof(uint32_t);
  const Lanes<uint32_t> turn = broadcast(Turn ? kHighBits : 0u);
  if (p.row == 1) {
    // The four numbers of a group are adjacent.
    GemmPacking fours = p;
    fours.row = kBytes;
    pack<uint32_t>(fours);
    if (!Turn) return;
    // All panels together are one run of vectors; each row is a run of its own.
    int64_t runs = p.to_row == 0 ? 1 : p.k;
    int64_t bytes = (p.n + kLanes<uint32_t> - 1) / kLanes<uint32_t> * kVecBytes * (p.k / runs);
    for (int64_t run = 0; run < runs; ++run) {
      char* to = p.to + run * p.to_row;
      for (int64_t at = 0; at < bytes; at += kVecBytes) {
        store<uint32_t>(to + at, load<uint32_t>(to + at) ^ turn);
      }
    }
    return;
  }
  for (int64_t j = 0; j < p.n; j += kLanes<uint32_t>) {
    // The panel of column j, and the column's position in it.
    int64_t first = j / kColumns * kColumns;
    int64_t width = p.n - first < kColumns ? p.n - first : kColumns;
    int64_t padded = (width + kLanes<uint32_t> - 1) / kLanes<uint32_t> * kLanes<uint32_t>;
    bool is_panel = p.to_row == 0;
    char* out = p.to + (is_panel ? first * p.k + (j - first) : j) * kBytes;
    int64_t to_row = is_panel ? padded * kBytes : p.to_row;
    int64_t left = p.n - j;
    auto mask = static_cast<__mmask16>(left < kLanes<uint32_t> ? (1u << left) - 1 : 0xffff);
    const char* from = p.b + j;
    auto row = [&](int64_t i) {
      // The forms with a mask have no undefined operand, of which GCC 12 would warn.
      constexpr __mmask16 kAll = 0xffff;
      __m128i bytes = _mm_maskz_loadu_epi8(mask, from + i * p.row);
      return (Lanes<uint32_t>)_mm512_maskz_cvtepu8_epi32(kAll, bytes);
    };
    for (int64_t l = 0; l < p.k; ++l, from += 4 * p.row, out += to_row) {
      Lanes<uint32_t> fours = row(0) | row(1) << 8 | row(2) << 16 | row(3) << 24;
      store<uint32_t>(out, fours ^ turn);
    }
  }
}
#endif

const GemmKernels* byte_gemm_kernels([[maybe_unused]] ScalarType dtype) {
#if defined(CPU_CAPABILITY_AVX512)
  static constexpr GemmKernels chars =
      kernels_of<ByteFours<true, false>>(4, &dots<ByteFours<true, true>>, &pack_fours<true>);
  static constexpr GemmKernels bytes =
      kernels_of<ByteFours<false, false>>(4, &dots<ByteFours<false, false>>, &pack_fours<false>);
  if (dtype != kShort) {
    if (!__builtin_cpu_supports("avx512vnni")) return nullptr;
    return dtype == kChar ? &chars : &bytes;
  }
#endif
#if defined(__x86_64__)
  static constexpr GemmKernels shorts =
      kernels_of<ShortPairs>(2, &dots<ShortPairs>, &pack<uint32_t>);
  if (dtype == kShort) return &shorts;
#endif
  return nullptr;
}

void byte_corrections(const int8_t* a, int64_t row, int64_t k, int64_t begin, int64_t end,
                      int32_t* to, int64_t n) {
  for (int64_t i = begin; i < end; ++i) {
    const int8_t* x = a + i * row;
    uint32_t sum = 0;
    for (int64_t l = 0; l < k; ++l) sum += static_cast<uint32_t>(x[l]);
    auto correction = static_cast<int32_t>(sum * -128u);
    int32_t* line = to + i * n;
    for (int64_t j = 0; j < n; ++j) line[j] = correction;
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(byte_corrections_on, &byte_corrections);
LAMELLA_REGISTER_KERNEL(byte_gemm_kernels_on, &byte_gemm_kernels);

}  // namespace lamella::native
