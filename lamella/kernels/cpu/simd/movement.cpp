// Strided copies, transposes, repetition and interleaving of elements by their size.
//
// Note [Transposes in registers]
//   R elements fill 16 bytes. R runs of R elements, read into R registers, are transposed by
//   log2(R) rounds that interleave register i with register i + R/2: a perfect shuffle each. Wider
//   registers hold such a run in each of their 16-byte lanes, so that one round transposes several
//   blocks, and the stores of a row are as wide as the register. (With AVX-512 the inserts that
//   fill four lanes cost what the wider stores save.)
#include "lamella/kernels/cpu/movement.h"

#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

// ---- Runs ----

template <class T, int kStep>
void read_every(T* to, const T* from, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * kStep];
}

template <class T>
void fill_run(T* to, T value, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// Copies n elements between strided places, not both contiguous.
template <class T>
void move_run(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n) {
  constexpr int64_t kBytes = sizeof(T);
  if (dst_stride == kBytes) {
    T* to = reinterpret_cast<T*>(dst);
    const T* from = reinterpret_cast<const T*>(src);
    if (src_stride == 0) return fill_run(to, *from, n);
    if (src_stride == -kBytes) return read_every<T, -1>(to, from, n);
    if (src_stride == 2 * kBytes) return read_every<T, 2>(to, from, n);
    if (src_stride == 3 * kBytes) return read_every<T, 3>(to, from, n);
    if (src_stride == 4 * kBytes) return read_every<T, 4>(to, from, n);
  }
  auto move = [&](int64_t i) __attribute__((always_inline)) {
    *reinterpret_cast<T*>(dst + i * dst_stride) = *reinterpret_cast<const T*>(src + i * src_stride);
  };
  for (; n >= 4; n -= 4, dst += 4 * dst_stride, src += 4 * src_stride) {
    // Gather and scatter instructions are slower than scalar moves; the asm prevents vectorisation.
    asm("" : "+r"(src));
    move(0);
    move(1);
    move(2);
    move(3);
  }
  for (int64_t i = 0; i < n; ++i) move(i);
}

// ---- Contiguous rows ----

#if defined(__x86_64__)
// Writes whole cache lines with stores that bypass the caches; the head and the tail normally.
void stream_row(char* dst, const char* src, int64_t bytes) {
  int64_t head = -reinterpret_cast<intptr_t>(dst) & 63;
  if (bytes < head + 64) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
    return;
  }
  std::memcpy(dst, src, static_cast<size_t>(head));
  int64_t at = head;
  for (; at + 64 <= bytes; at += 64) {
    auto* to = reinterpret_cast<__m128i*>(dst + at);
    auto* from = reinterpret_cast<const __m128i*>(src + at);
#if defined(CPU_CAPABILITY_AVX512)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#else
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
#endif
  }
  std::memcpy(dst + at, src + at, static_cast<size_t>(bytes - at));
}
void end_stream() { _mm_sfence(); }
#else
void stream_row(char* dst, const char* src, int64_t bytes) {
  std::memcpy(dst, src, static_cast<size_t>(bytes));
}
void end_stream() {}
#endif

void copy_rows(const Plane& dst, const Plane& src, int64_t bytes, int64_t rows, bool stream) {
  char* to = dst.data;
  const char* from = src.data;
  if (stream && bytes >= 256) {
    for (int64_t r = 0; r < rows; ++r) {
      stream_row(to + r * dst.stride[1], from + r * src.stride[1], bytes);
    }
    return end_stream();
  }
  // Inlined, so that for constant lengths the branches of RunCopier are resolved outside the loop.
  auto each = [&](int64_t length) __attribute__((always_inline)) {
    const RunCopier copy(length);
    for (int64_t r = 0; r < rows; ++r) copy(to + r * dst.stride[1], from + r * src.stride[1]);
  };
  switch (bytes) {
    case 32:
      return each(32);
    case 64:
      return each(64);
    case 128:
      return each(128);
    default:
      return each(bytes);
  }
}

// Each element of src becomes a row of n0 in contiguous memory.
template <class T>
void repeat_each(char* dst, const char* src, int64_t src_stride, int64_t n0, int64_t n1) {
  constexpr int64_t kPiece = 64 / sizeof(T);
  T* to = reinterpret_cast<T*>(dst);
  int64_t j = 0;
  // Writes a whole piece for each row; its excess is overwritten by the next row.
  if (n0 <= kPiece) {
    for (int64_t whole = (n0 * n1 - kPiece) / n0; j < whole; ++j) {
      T value = *reinterpret_cast<const T*>(src + j * src_stride);
      T* row = to + j * n0;
#pragma GCC unroll 64
      for (int64_t i = 0; i < kPiece; ++i) row[i] = value;
    }
  }
  for (; j < n1; ++j) {
    fill_run(to + j * n0, *reinterpret_cast<const T*>(src + j * src_stride), n0);
  }
}

template <class T, int kCount>
void interleave_few(char* dst, const char* const* src, int64_t n) {
  T* to = reinterpret_cast<T*>(dst);
  const T* from[kCount];
  for (int k = 0; k < kCount; ++k) from[k] = reinterpret_cast<const T*>(src[k]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < kCount; ++k) to[i * kCount + k] = from[k][i];
  }
}

template <class T>
void interleave(char* dst, const char* const* src, int64_t count, int64_t n) {
  constexpr int64_t kBytes = sizeof(T);
  if (count == 2) return interleave_few<T, 2>(dst, src, n);
  if (count == 3) return interleave_few<T, 3>(dst, src, n);
  if (count == 4) return interleave_few<T, 4>(dst, src, n);
  // A piece of the result stays in the first-level cache while all sources are read.
  const int64_t piece = 16384 / (count * kBytes) + 1;
  for (int64_t i = 0; i < n; i += piece) {
    int64_t now = n - i < piece ? n - i : piece;
    for (int64_t k = 0; k < count; ++k) {
      move_run<T>(dst + (i * count + k) * kBytes, count * kBytes, src[k] + i * kBytes, kBytes, now);
    }
  }
}

// ---- Transposes ----

#if defined(__x86_64__)
// Loads a run into each 16-byte lane, and interleaves the lower or upper halves of each lane.
#define LAMELLA_UNPACK(V, prefix)                                    \
  template <int kBytes>                                              \
  inline V unpack_low(V a, V b) {                                    \
    if constexpr (kBytes == 1) return prefix##_unpacklo_epi8(a, b);  \
    if constexpr (kBytes == 2) return prefix##_unpacklo_epi16(a, b); \
    if constexpr (kBytes == 4) return prefix##_unpacklo_epi32(a, b); \
    if constexpr (kBytes == 8) return prefix##_unpacklo_epi64(a, b); \
  }                                                                  \
  template <int kBytes>                                              \
  inline V unpack_high(V a, V b) {                                   \
    if constexpr (kBytes == 1) return prefix##_unpackhi_epi8(a, b);  \
    if constexpr (kBytes == 2) return prefix##_unpackhi_epi16(a, b); \
    if constexpr (kBytes == 4) return prefix##_unpackhi_epi32(a, b); \
    if constexpr (kBytes == 8) return prefix##_unpackhi_epi64(a, b); \
  }
LAMELLA_UNPACK(__m128i, _mm)
inline __m128i load_run(const char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline void load_lanes(const char* p, int64_t, __m128i& v) { v = load_run(p); }
#if defined(CPU_CAPABILITY_AVX2) || defined(CPU_CAPABILITY_AVX512)
LAMELLA_UNPACK(__m256i, _mm256)
inline void load_lanes(const char* p, int64_t step, __m256i& v) {
  v = _mm256_inserti128_si256(_mm256_castsi128_si256(load_run(p)), load_run(p + step), 1);
}
using Register = __m256i;
#else
using Register = __m128i;
#endif
#undef LAMELLA_UNPACK

// Writes R rows of dst, each as long as the register, from R columns of src.
template <int kBytes, class V>
inline void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_column) {
  constexpr int kRun = 16 / kBytes;
  V a[kRun], b[kRun];
#pragma GCC unroll 16
  for (int k = 0; k < kRun; ++k) load_lanes(src + k * src_column, kRun * src_column, a[k]);
  V* from = a;
  V* to = b;
#pragma GCC unroll 4
  for (int span = kRun; span > 1; span /= 2) {
#pragma GCC unroll 8
    for (int k = 0; k < kRun / 2; ++k) {
      to[2 * k] = unpack_low<kBytes>(from[k], from[k + kRun / 2]);
      to[2 * k + 1] = unpack_high<kBytes>(from[k], from[k + kRun / 2]);
    }
    V* other = from;
    from = to;
    to = other;
  }
#pragma GCC unroll 16
  for (int k = 0; k < kRun; ++k) std::memcpy(dst + k * dst_row, &from[k], sizeof(V));
}
#endif

// Transposes a plane: contiguous rows of dst are columns of src, and contiguous runs of src are
// columns of dst.
template <class T>
void transpose_plane(char* dst, int64_t dst_row, const char* src, int64_t src_column,
                     int64_t columns, int64_t rows) {
  constexpr int64_t kBytes = sizeof(T);
  if (columns <= 4 && dst_row == columns * kBytes) {
    const char* sources[4];
    for (int64_t c = 0; c < columns; ++c) sources[c] = src + c * src_column;
    if (columns > 1) return interleave<T>(dst, sources, columns, rows);
  }
  int64_t r = 0;
#if defined(__x86_64__)
  if constexpr (kBytes < 16) {
    // Groups of rows that use a few adjacent cache lines of src completely.
    constexpr int64_t kRun = 16 / kBytes, kLine = 256 / kBytes;
    constexpr int64_t kWidth = sizeof(Register) / kBytes;
    while (r + kRun <= rows) {
      int64_t last = r + kLine <= rows ? r + kLine : r + (rows - r) / kRun * kRun;
      int64_t c = 0;
      for (; c + kWidth <= columns; c += kWidth) {
        for (int64_t k = r; k < last; k += kRun) {
          transpose_block<kBytes, Register>(dst + k * dst_row + c * kBytes, dst_row,
                                            src + c * src_column + k * kBytes, src_column);
        }
      }
      for (; c + kRun <= columns; c += kRun) {
        for (int64_t k = r; k < last; k += kRun) {
          transpose_block<kBytes, __m128i>(dst + k * dst_row + c * kBytes, dst_row,
                                           src + c * src_column + k * kBytes, src_column);
        }
      }
      for (; c < columns; ++c) {
        move_run<T>(dst + r * dst_row + c * kBytes, dst_row, src + c * src_column + r * kBytes,
                    kBytes, last - r);
      }
      r = last;
    }
  }
#endif
  // Few rows, or elements as wide as a register: pieces of columns stay in the first-level cache.
  constexpr int64_t kPiece = 256, kRows = 64 / kBytes;
  for (; r < rows; r += kRows) {
    int64_t last = r + kRows < rows ? r + kRows : rows;
    for (int64_t c = 0; c < columns; c += kPiece) {
      int64_t now = columns - c < kPiece ? columns - c : kPiece;
      for (int64_t k = r; k < last; ++k) {
        move_run<T>(dst + k * dst_row + c * kBytes, kBytes, src + c * src_column + k * kBytes,
                    src_column, now);
      }
    }
  }
}

// ---- All planes ----

template <class T>
void plane(const Plane& dst, const Plane& src, int64_t n0, int64_t n1, bool stream) {
  constexpr int64_t kBytes = sizeof(T);
  if (dst.stride[0] == kBytes) {
    if (src.stride[0] == kBytes) return copy_rows(dst, src, n0 * kBytes, n1, stream);
    if (src.stride[1] == kBytes && n1 > 1) {
      return transpose_plane<T>(dst.data, dst.stride[1], src.data, src.stride[0], n0, n1);
    }
    if (src.stride[0] == 0 && n1 > 1 && dst.stride[1] == n0 * kBytes) {
      return repeat_each<T>(dst.data, src.data, src.stride[1], n0, n1);
    }
  }
  for (int64_t r = 0; r < n1; ++r) {
    move_run<T>(dst.data + r * dst.stride[1], dst.stride[0], src.data + r * src.stride[1],
                src.stride[0], n0);
  }
}

template <class T>
void fill(char* dst, const char* value, int64_t n) {
  T element;
  std::memcpy(&element, value, sizeof(T));
  fill_run(reinterpret_cast<T*>(dst), element, n);
}

template <class T>
constexpr Movement kMovement = {&plane<T>, &fill<T>, &interleave<T>};

const Movement& movement(int64_t bytes) {
  switch (bytes) {
    case 1:
      return kMovement<uint8_t>;
    case 2:
      return kMovement<uint16_t>;
    case 4:
      return kMovement<uint32_t>;
    case 8:
      return kMovement<uint64_t>;
    default:
      return kMovement<Bytes16>;
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(movement_on, &movement);

}  // namespace lamella::native
