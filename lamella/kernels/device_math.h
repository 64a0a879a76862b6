// Matrix products, convolutions, transforms and factorisations of backends. Internal.
#pragma once
#include "lamella/kernels/cpu/convolution.h"
#include "lamella/kernels/cpu/gemm.h"

namespace lamella::native {

// Dense arrays of `batch` transforms over 1 to 3 dimensions. A real side has n numbers, its complex
// side n[rank - 1] / 2 + 1 of them in the last dimension. Results are not scaled.
struct DeviceFourier {
  Device device = kCPU;
  bool from_real, to_real, forward;
  bool is_double;
  int rank;
  int64_t n[3];
  int64_t batch;
  void* from;  // is overwritten if to_real
  void* to;
};

// A factorisation, or a solution by one, of `count` column-major matrices one after the other.
struct DeviceFactor {
  enum Kind : int {
    kCholesky,  // a (n x n), of which `upper` or the lower part is read and written
    kLU,        // a (m x n), pivots
    kSolve,  // a (n x n) and pivots of kLU; b (n x k) becomes the solution; op: 0 a, 1 a^T, 2 a^H
    kQR,     // a (m x n), b: k scales of the reflectors
    kOrthogonal,  // the first n columns of Q in a (m x n), from k reflectors and their scales in b
    kEigen,       // a (n x n), b: n eigenvalues; a becomes the vectors, if `vectors`
    kSingular,    // a (m x n), m >= n, b: n values; u (m x m, or m x n unless `full`), v: V^H
  } kind;
  Device device = kCPU;
  ScalarType dtype;
  int64_t count, m, n, k;
  bool upper, vectors, full;
  int op;
  void *a, *b, *u, *v;
  int32_t *pivots, *info;  // on the device; info may be null
};

struct DeviceMath {
  // Each returns false, before anything is written, for a problem that the backend does not solve.
  bool (*gemm)(const char* op, const Gemm& problem);
  bool (*forward)(const char* op, const Convolution& c, const Tensor& src, const Tensor& weight,
                  const Tensor& bias, const Tensor& dst);
  bool (*backward_data)(const char* op, const Convolution& c, const Tensor& dst,
                        const Tensor& weight, const Tensor& src);
  bool (*backward_weight)(const char* op, const Convolution& c, const Tensor& src,
                          const Tensor& dst, const Tensor& weight);
  bool (*fourier)(const char* op, const DeviceFourier& call);
  bool (*factor)(const char* op, const DeviceFactor& call);
};
// A call about a stack of column-major matrices that has elements.
inline DeviceFactor factor_call(DeviceFactor::Kind kind, const Tensor& a) {
  DeviceFactor call{};
  const int64_t m = a.size(-2), n = a.size(-1);
  call.kind = kind;
  call.device = a.device();
  call.dtype = a.scalar_type();
  call.count = a.numel() / (m * n);
  call.m = m;
  call.n = n;
  call.a = a.data_ptr();
  return call;
}
// The table of a device's type. Throws NotImplementedError if there is none.
LAMELLA_PRIVATE_API const DeviceMath& device_math(const char* op, Device device);
// Throws NotImplementedError, so that the operator runs elsewhere, unless a function of the table
// solved the problem.
LAMELLA_PRIVATE_API void check_solved(bool solved, const char* op, Device device);
inline void factor_on_device(const char* op, const DeviceFactor& call) {
  check_solved(device_math(op, call.device).factor(op, call), op, call.device);
}

}  // namespace lamella::native
