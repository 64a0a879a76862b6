// Matrix products of any strides and dtypes, for machines without cuBLASLt and for what that does
// not compute: integers, sums over nothing, matrices whose rows and columns both have gaps.
//
// A block computes 64 x 64 elements of the result, 4 x 4 in each thread, from slices of columns of
// a and rows of b in shared memory. Floats of 16 bits are summed in float32 by tensor cores: Note
// [Tiles] in tiles.h. Integers wrap.
#pragma once
#include <cstdint>
#include <type_traits>

#include "lamella/cuda/kernels/complex_pair.h"
#include "lamella/cuda/kernels/matmul_parameters.h"
#include "lamella/cuda/kernels/tiles.h"

namespace lamella::cuda {

// The type of sums.
template <class T>
struct MatmulSum {
  using type = std::conditional_t<sizeof(T) == 2, float, T>;
};
template <class T>
  requires std::is_integral_v<T>
struct MatmulSum<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

// c = alpha a b + beta d. Blocks along x take tiles of a matrix, blocks along y matrices.
template <class T, class U, class R>
LAMELLA_DEVICE void matmul(const MatmulParameters& p) {
  using S = typename MatmulSum<T>::type;
  constexpr bool kHalves = std::is_same_v<T, StoredHalf> || std::is_same_v<T, StoredBFloat16>;
  using Kept = std::conditional_t<kHalves, T, S>;
  constexpr int kTile = kMatmulTile, kEach = 4, kSlice = kHalves ? 32 : kMatmulSlice;
  // Rows of a and columns of b for tensor cores, else columns of a and rows of b.
  constexpr int kPitch = kHalves ? row_pitch<Kept>(kSlice) : kTile + 1;
  alignas(16) __shared__ Kept left[kPitch * (kHalves ? kTile : kSlice)];
  alignas(16) __shared__ Kept right[kPitch * (kHalves ? kTile : kSlice)];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int64_t tiles = (p.n + kTile - 1) / kTile;
  const int64_t i0 = blockIdx.x / tiles * kTile, j0 = blockIdx.x % tiles * kTile;
  const int i1 = kHalves ? warp % 4 * 16 + lane / 4 : thread / 16;
  const int j1 = kHalves ? warp / 4 * 32 + lane % 4 * 2 : thread % 16;
  S alpha = *reinterpret_cast<const S*>(p.alpha), beta = *reinterpret_cast<const S*>(p.beta);
  // Loads a slice from l0 on of rows of a or columns of b; neighbouring threads read neighbours.
  auto load = [&](Kept* to, const auto* from, int64_t step, int64_t along, int64_t first,
                  int64_t count, int64_t l0) {
    for (int at = thread; at < kTile * kSlice; at += kMatmulThreads) {
      const int i = step != 1 ? at / kSlice : at % kTile, l = step != 1 ? at % kSlice : at / kTile;
      const bool inside = first + i < count && l0 + l < p.k;
      const int64_t place = (first + i) * step + (l0 + l) * along;
      Kept& kept = to[kHalves ? i * kPitch + l : l * kPitch + i];
      kept = inside ? static_cast<Kept>(from[place]) : Kept{};
    }
  };
  for (int64_t matrix = blockIdx.y; matrix < p.batch; matrix += gridDim.y) {
    const T* a = device_pointer<T>(p.a.data) + matrix * p.a.batch;
    const U* b = device_pointer<U>(p.b.data) + matrix * p.b.batch;
    S sums[kEach][kEach];
    for (auto& row : sums) {
      for (S& sum : row) sum = S(0);
    }
    for (int64_t l0 = 0; l0 < p.k; l0 += kSlice) {
      load(left, a, p.a.row, p.a.column, i0, p.m, l0);
      load(right, b, p.b.column, p.b.row, j0, p.n, l0);
      __syncthreads();
      if constexpr (kHalves) {
        multiply_tiles<true>(sums, left + warp % 4 * 16 * kPitch, kPitch,
                             right + warp / 4 * 32 * kPitch, kPitch, kSlice);
      } else {
        for (int l = 0; l < kSlice; ++l) {
          S x[kEach], y[kEach];
          for (int e = 0; e < kEach; ++e) {
            x[e] = left[l * kPitch + i1 + 16 * e];
            y[e] = right[l * kPitch + j1 + 16 * e];
          }
          for (int e = 0; e < kEach; ++e) {
            for (int f = 0; f < kEach; ++f) sums[e][f] = multiply_add(x[e], y[f], sums[e][f]);
          }
        }
      }
      __syncthreads();
    }
    LAMELLA_UNROLL
    for (int e = 0; e < kEach; ++e) {
      LAMELLA_UNROLL
      for (int f = 0; f < kEach; ++f) {
        const int64_t i = i0 + i1 + (kHalves ? f / 2 * 8 : 16 * e);
        const int64_t j = j0 + j1 + (kHalves ? 8 * e + f % 2 : 16 * f);
        if (i >= p.m || j >= p.n) continue;
        S sum = alpha * sums[e][f];
        if (p.d.data != 0) {
          const R* d = device_pointer<R>(p.d.data) + matrix * p.d.batch;
          sum = sum + beta * converted<S>(d[i * p.d.row + j * p.d.column]);
        }
        if constexpr (std::is_arithmetic_v<S>) {
          using Signed = std::conditional_t<std::is_integral_v<T>, int64_t, S>;
          if (p.relu != 0 && converted<Signed>(stored_as<R>(sum)) < 0) sum = S(0);
        }
        device_pointer<R>(p.c.data)[matrix * p.c.batch + i * p.c.row + j * p.c.column] =
            stored_as<R>(sum);
      }
    }
  }
}

// Rows of Note [Kernels of blocks], by the types of a, b and c.
#define LAMELLA_MATMUL_KERNEL(suffix, ...) \
  LAMELLA_BLOCK_KERNEL(matmul_##suffix, kMatmulThreads, MatmulParameters, matmul<__VA_ARGS__>)
#define LAMELLA_MATMUL_KERNELS                                                \
  LAMELLA_MATMUL_KERNEL(f32, float, float, float)                             \
  LAMELLA_MATMUL_KERNEL(f64, double, double, double)                          \
  LAMELLA_MATMUL_KERNEL(f16, StoredHalf, StoredHalf, StoredHalf)              \
  LAMELLA_MATMUL_KERNEL(bf16, StoredBFloat16, StoredBFloat16, StoredBFloat16) \
  LAMELLA_MATMUL_KERNEL(c64, Pair<float>, Pair<float>, Pair<float>)           \
  LAMELLA_MATMUL_KERNEL(c128, Pair<double>, Pair<double>, Pair<double>)       \
  LAMELLA_MATMUL_KERNEL(u8, uint8_t, uint8_t, uint8_t)                        \
  LAMELLA_MATMUL_KERNEL(i8, int8_t, int8_t, int8_t)                           \
  LAMELLA_MATMUL_KERNEL(i16, int16_t, int16_t, int16_t)                       \
  LAMELLA_MATMUL_KERNEL(i32, int32_t, int32_t, int32_t)                       \
  LAMELLA_MATMUL_KERNEL(i64, int64_t, int64_t, int64_t)                       \
  LAMELLA_MATMUL_KERNEL(i8_i32, int8_t, int8_t, int32_t)                      \
  LAMELLA_MATMUL_KERNEL(u8_i32, uint8_t, int8_t, int32_t)

}  // namespace lamella::cuda
