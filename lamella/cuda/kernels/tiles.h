// Products of tiles in shared memory: by tensor cores for floats of 16 bits, summed in float.
//
// Note [Tiles]
//   A warp computes 16 rows of a product, in tiles of 8 columns. Lane l has of each tile the
//   elements at row l / 4 and columns 2 (l % 4), 2 (l % 4) + 1, and those 8 rows below: the
//   accumulators of PTX's mma.m16n8k16. Rows in shared memory are 16 bytes longer than a power of
//   two, so that the 8 rows of a matrix lie in different banks.
#pragma once
#include <cstring>

#include "lamella/cuda/kernels/pointwise.h"

namespace lamella::cuda {

// The elements of a row in shared memory.
template <class T>
constexpr int row_pitch(int width) {
  return width + 16 / static_cast<int>(sizeof(T));
}

#ifdef LAMELLA_KERNEL_BODIES

template <class S>
LAMELLA_DEVICE S multiply_add(S a, S b, S sum) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<S, float>) return __fmaf_rn(a, b, sum);
  if constexpr (std::is_same_v<S, double>) return __fma_rn(a, b, sum);
#endif
  return sum + a * b;
}

// Four matrices of 8 x 8 elements of 16 bits, of whose rows in shared memory each lane gives one;
// and c += a b for matrices of 16 x 16 and 16 x 8, in the layouts of PTX.
#ifdef __CUDACC__
LAMELLA_DEVICE uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}
template <bool transposed>
LAMELLA_DEVICE void load_matrices(uint32_t (&x)[4], const void* row) {
#define LAMELLA_LOAD(form)                                                             \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" form ".shared.b16 {%0,%1,%2,%3}, [%4];" \
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])                        \
               : "r"(shared_address(row))                                              \
               : "memory")
  if constexpr (transposed) {
    LAMELLA_LOAD(".trans");
  } else {
    LAMELLA_LOAD("");
  }
#undef LAMELLA_LOAD
}
template <class T>
LAMELLA_DEVICE void multiply_matrices(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                      uint32_t b1) {
#define LAMELLA_MMA(type)                                          \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type       \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (std::is_same_v<T, StoredHalf>) {
    LAMELLA_MMA("f16");
  } else {
    LAMELLA_MMA("bf16");
  }
#undef LAMELLA_MMA
}
#else
template <bool transposed>
void load_matrices(uint32_t (&x)[4], const void* row) {
  standin::load_matrices(x, row, transposed);
}
template <class T>
void multiply_matrices(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  standin::multiply_matrices(c, a, b0, b1, [](uint16_t bits) { return widened(T{bits}); });
}
#endif

// c += a b, for a of 16 x k elements and the first `used` tiles of b, of k x 8 N. With `columns`
// b is stored by columns. For 16 bits k is a multiple of 16, and N and `used` are even.
template <bool columns, class T, int N>
LAMELLA_DEVICE void multiply_tiles(float (&c)[N][4], const T* a, int a_pitch, const T* b,
                                   int b_pitch, int k, int used = N) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if constexpr (sizeof(T) == 2) {
    const int row = columns ? lane % 8 + lane / 16 * 8 : lane % 16;
    const int column = columns ? lane / 8 % 2 * 8 : lane / 16 * 8;
    a += lane % 16 * a_pitch + lane / 16 * 8;
    b += row * b_pitch + column;
    LAMELLA_UNROLL_4
    for (int l = 0; l < k; l += 16) {
      uint32_t x[4], y[4];
      load_matrices<false>(x, a + l);
      LAMELLA_UNROLL
      for (int n = 0; n < N; n += 2) {
        if (n >= used) continue;
        load_matrices<!columns>(y, b + (columns ? n * 8 * b_pitch + l : l * b_pitch + n * 8));
        multiply_matrices<T>(c[n], x, y[0], y[1]);
        multiply_matrices<T>(c[n + 1], x, y[2], y[3]);
      }
    }
  } else {
    a += lane / 4 * a_pitch;
    b += lane % 4 * 2 * (columns ? b_pitch : 1);
    LAMELLA_UNROLL_4
    for (int l = 0; l < k; ++l) {
      const float x[2] = {a[l], a[8 * a_pitch + l]};
      LAMELLA_UNROLL
      for (int n = 0; n < N; ++n) {
        if (n >= used) continue;
        LAMELLA_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int at = columns ? (n * 8 + e % 2) * b_pitch + l : l * b_pitch + n * 8 + e % 2;
          c[n][e] = multiply_add(x[e / 2], b[at], c[n][e]);
        }
      }
    }
  }
}

// Stores two neighbours, at an even place of shared memory.
template <class T>
LAMELLA_DEVICE void store_pair(T* to, float x, float y) {
#ifdef __CUDACC__
  if constexpr (sizeof(T) == 2) {
    uint32_t pair;
    if constexpr (std::is_same_v<T, StoredHalf>) {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    } else {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    }
    *reinterpret_cast<uint32_t*>(to) = pair;
    return;
  }
#endif
  to[0] = stored_as<T>(x);
  to[1] = stored_as<T>(y);
}
// Stores the tiles of a warp as 16 rows.
template <class T, int N>
LAMELLA_DEVICE void store_tiles(T* to, int pitch, const float (&c)[N][4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  to += lane / 4 * pitch + lane % 4 * 2;
  LAMELLA_UNROLL
  for (int n = 0; n < N; ++n) {
    store_pair(to + n * 8, c[n][0], c[n][1]);
    store_pair(to + 8 * pitch + n * 8, c[n][2], c[n][3]);
  }
}

// Copies 16 aligned bytes to shared memory, or stores zeros; wait_for_copies() ends them.
LAMELLA_DEVICE void copy_16(void* to, const void* from, bool given) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(given ? 16 : 0)
               : "memory");
#else
  std::memset(to, 0, 16);
  if (given) std::memcpy(to, from, 16);
#endif
}
// Ends the thread's copies, except those after the last `later` calls of mark_copies().
LAMELLA_DEVICE void mark_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int later>
LAMELLA_DEVICE void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(later) : "memory");
#endif
}

// Loads `count` rows of W elements from row `first` on, with zeros in the place of elements outside
// of rows x width. `vectors`: 16 bytes at a time, for aligned rows of neighbouring elements.
template <int W, class T>
LAMELLA_DEVICE void load_rows(T* to, int count, const T* from, int64_t row, int64_t column,
                              int64_t first, int64_t rows, int64_t width, bool vectors) {
  constexpr int kEach = 16 / sizeof(T);
  const int step = vectors ? kEach : 1, in_row = W / step;
  from += first * row;
  LAMELLA_LOOP
  for (int i = static_cast<int>(threadIdx.x); i < count * in_row; i += blockDim.x) {
    const int r = vectors ? i / (W / kEach) : i / W, c = (i - r * in_row) * step;
    const bool given = first + r < rows && c < width;
    const T* at = given ? from + r * row + c * column : from;
    T* there = to + r * row_pitch<T>(W) + c;
    if (vectors) {
      copy_16(there, at, given);
    } else {
      *there = given ? *at : T{};
    }
  }
}

#endif

}  // namespace lamella::cuda
