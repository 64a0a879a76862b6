// Factorisations of many small matrices, a block for each: Cholesky, LU with row exchanges, and
// solutions by LU, with LAPACK's layouts, pivots and reports.
#pragma once
#include <cstdint>

#include "lamella/cuda/kernels/complex_pair.h"
#include "lamella/cuda/kernels/device.h"
#include "lamella/cuda/kernels/factor_parameters.h"

namespace lamella::cuda {

template <class T>
LAMELLA_DEVICE void factor_lu(const FactorParameters& p) {
  using R = typename RealOf<T>::type;
  __shared__ int chosen;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int m = p.m, n = p.n, steps = m < n ? m : n;
  for (int64_t matrix = blockIdx.x; matrix < p.count; matrix += gridDim.x) {
    T* a = device_pointer<T>(p.a) + matrix * m * n;
    int32_t* pivots = device_pointer<int32_t>(p.pivots) + matrix * steps;
    int info = 0;
    for (int j = 0; j < steps; ++j) {
      if (thread < 32) {
        R most = -1;
        int at = j;
        for (int i = j + thread; i < m; i += 32) {
          const R size = size_of(a[i + j * m]);
          if (size > most) most = size, at = i;
        }
        for (int by = 16; by > 0; by /= 2) {
          const R other = __shfl_xor_sync(~0U, most, by);
          const int other_at = __shfl_xor_sync(~0U, at, by);
          if (other > most || (other == most && other_at < at)) most = other, at = other_at;
        }
        if (thread == 0) {
          chosen = at;
          pivots[j] = at + 1;
        }
      }
      __syncthreads();
      const int row = chosen;
      for (int c = thread; row != j && c < n; c += threads) {
        const T kept = a[j + c * m];
        a[j + c * m] = a[row + c * m];
        a[row + c * m] = kept;
      }
      __syncthreads();
      const T head = a[j + j * m];
      if (size_of(head) == R(0)) {
        if (info == 0) info = j + 1;
      } else {
        for (int i = j + 1 + thread; i < m; i += threads) a[i + j * m] = a[i + j * m] / head;
      }
      __syncthreads();
      const int rows = m - j - 1, elements = rows * (n - j - 1);
      for (int at = thread; at < elements; at += threads) {
        const int i = j + 1 + at % rows, c = j + 1 + at / rows;
        a[i + c * m] = a[i + c * m] - a[i + j * m] * a[j + c * m];
      }
      __syncthreads();
    }
    if (thread == 0) device_pointer<int32_t>(p.info)[matrix] = info;
  }
}

template <class T>
LAMELLA_DEVICE void factor_cholesky(const FactorParameters& p) {
  using R = typename RealOf<T>::type;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int n = p.n;
  for (int64_t matrix = blockIdx.x; matrix < p.count; matrix += gridDim.x) {
    T* a = device_pointer<T>(p.a) + matrix * n * n;
    // Elements of the lower factor; in the upper part lies its adjoint.
    auto at = [&](int i, int j) -> T& { return p.upper != 0 ? a[j + i * n] : a[i + j * n]; };
    int info = 0;
    for (int j = 0; j < n && info == 0; ++j) {
      const R head = real_part(at(j, j));
      if (!(head > R(0))) info = j + 1;
      const R root = sqrt(head);
      __syncthreads();  // all have read the element
      if (info != 0) continue;
      T divisor;
      make_real(&divisor, root);
      if (thread == 0) at(j, j) = divisor;
      for (int i = j + 1 + thread; i < n; i += threads) at(i, j) = at(i, j) / divisor;
      __syncthreads();
      const int rows = n - j - 1;
      for (int e = thread; e < rows * rows; e += threads) {
        const int i = j + 1 + e % rows, c = j + 1 + e / rows;
        if (i < c) continue;
        const T left = p.upper != 0 ? conjugate(at(i, j)) : at(i, j);
        const T right = p.upper != 0 ? at(c, j) : conjugate(at(c, j));
        const T product = left * right;
        at(i, c) = at(i, c) - (p.upper != 0 ? conjugate(product) : product);
      }
      __syncthreads();
    }
    if (thread == 0) device_pointer<int32_t>(p.info)[matrix] = info;
  }
}

// b becomes the solution; op: 0 a, 1 its transpose, 2 its adjoint.
template <class T>
LAMELLA_DEVICE void factor_solve(const FactorParameters& p) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int n = p.n, k = p.k;
  for (int64_t matrix = blockIdx.x; matrix < p.count; matrix += gridDim.x) {
    const T* a = device_pointer<T>(p.a) + matrix * n * n;
    T* b = device_pointer<T>(p.b) + matrix * n * k;
    const int32_t* pivots = device_pointer<int32_t>(p.pivots) + matrix * n;
    auto exchange = [&](int j) {
      const int row = pivots[j] - 1;
      for (int c = thread; row != j && c < k; c += threads) {
        const T kept = b[j + c * n];
        b[j + c * n] = b[row + c * n];
        b[row + c * n] = kept;
      }
    };
    auto entry = [&](int i, int j) {
      return p.op == 0 ? a[i + j * n] : p.op == 1 ? a[j + i * n] : conjugate(a[j + i * n]);
    };
    // Row j, divided by its diagonal element unless that is 1, is subtracted from [begin, end).
    auto eliminate = [&](int j, int begin, int end, bool divides) {
      if (divides) {
        for (int c = thread; c < k; c += threads) b[j + c * n] = b[j + c * n] / entry(j, j);
        __syncthreads();
      }
      const int rows = end - begin;
      for (int e = thread; e < rows * k; e += threads) {
        const int i = begin + e % rows, c = e / rows;
        b[i + c * n] = b[i + c * n] - entry(i, j) * b[j + c * n];
      }
      __syncthreads();
    };
    // A thread exchanges the rows of its own columns.
    for (int j = 0; p.op == 0 && j < n; ++j) exchange(j);
    __syncthreads();
    for (int j = 0; j < n; ++j) eliminate(j, j + 1, n, p.op != 0);
    for (int j = n - 1; j >= 0; --j) eliminate(j, 0, j, p.op == 0);
    for (int j = n - 1; p.op != 0 && j >= 0; --j) exchange(j);
    __syncthreads();
  }
}

}  // namespace lamella::cuda

#define LAMELLA_FACTOR_KERNEL(kind, suffix, T)                                  \
  LAMELLA_BLOCK_KERNEL(factor_##kind##_##suffix, lamella::cuda::kFactorThreads, \
                       lamella::cuda::FactorParameters, lamella::cuda::factor_##kind<T>)
#define LAMELLA_FACTOR_TYPES(kind)                             \
  LAMELLA_FACTOR_KERNEL(kind, f32, float)                      \
  LAMELLA_FACTOR_KERNEL(kind, f64, double)                     \
  LAMELLA_FACTOR_KERNEL(kind, c64, lamella::cuda::Pair<float>) \
  LAMELLA_FACTOR_KERNEL(kind, c128, lamella::cuda::Pair<double>)
#define LAMELLA_FACTOR_KERNELS   \
  LAMELLA_FACTOR_TYPES(lu)       \
  LAMELLA_FACTOR_TYPES(cholesky) \
  LAMELLA_FACTOR_TYPES(solve)
