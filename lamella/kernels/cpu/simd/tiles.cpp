// Transposed tiles, and copies of results that bypass the caches.
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// Sixteen bytes.
struct Pair {
  uint64_t low, high;
};
template <class T>
struct MemoryOf {
  typedef T type __attribute__((aligned(1), may_alias));
};
template <>
struct MemoryOf<Pair> {
  typedef uint64_t Word __attribute__((aligned(1), may_alias));
  struct type {
    Word low, high;
    operator Pair() const { return {low, high}; }
    type& operator=(const Pair& pair) {
      low = pair.low;
      high = pair.high;
      return *this;
    }
  };
};
template <class T>
using Memory = typename MemoryOf<T>::type;

// Calls f with a value of a type that has `bytes` bytes.
template <class F>
inline void visit_size(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      return f(Pair());
  }
}

// Transposes sixteen elements of four bytes: four columns at `src` become four rows.
typedef uint32_t Four __attribute__((vector_size(16), aligned(1), may_alias));
inline void turn_four(const char* src, int64_t stride, char* dst, int64_t row) {
  auto column = [&](int64_t c) { return *reinterpret_cast<const Four*>(src + c * stride); };
  auto store = [&](int64_t r, Four v) { *reinterpret_cast<Four*>(dst + r * row) = v; };
  Four a = column(0), b = column(1), c = column(2), d = column(3);
  Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
       cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  store(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  store(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(2, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  store(3, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
}

void turn(const char* src, int64_t stride, char* dst, int64_t rows, int64_t columns, int64_t bytes,
          int64_t next) {
  visit_size(bytes, [&](auto tag) {
    using T = decltype(tag);
    auto* to = reinterpret_cast<Memory<T>*>(dst);
    int64_t c = 0;
    if constexpr (sizeof(T) == 4) {
      for (; rows % 4 == 0 && c + 4 <= columns; c += 4, src += 4 * stride) {
        for (int64_t k = 0; k < 4; ++k) __builtin_prefetch(src + k * stride + next);
        for (int64_t r = 0; r < rows; r += 4) {
          turn_four(src + r * 4, stride, dst + (r * columns + c) * 4, columns * 4);
        }
      }
    }
    for (; c < columns; ++c, src += stride) {
      auto* from = reinterpret_cast<const Memory<T>*>(src);
      __builtin_prefetch(src + next);
      for (int64_t r = 0; r < rows; ++r) to[r * columns + c] = from[r];
    }
  });
}

void stream(const char* src, char* dst, int64_t bytes) {
#if defined(__x86_64__)
  int64_t i = 0;
#if defined(CPU_CAPABILITY_AVX512)
  for (; i + 64 <= bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i), _mm512_loadu_si512(src + i));
  }
#else
  for (; i + 16 <= bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i)));
  }
#endif
  std::memcpy(dst + i, src + i, static_cast<size_t>(bytes - i));
#else
  std::memcpy(dst, src, static_cast<size_t>(bytes));
#endif
}
void end_stream() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

const TileLoops& tile_loops() {
  static constexpr TileLoops loops = {&turn, &stream, &end_stream};
  return loops;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(tile_loops_on, &tile_loops);

}  // namespace lamella::native
