// c10::cuda::compat: functions of elements by one name for float and double.
#pragma once
#include <c10/macros/Macros.h>

#include <cmath>

#ifdef __CUDACC__
#define LAMELLA_MATH_OF(name, suffixed)                                       \
  __host__ __device__ inline float name(float x) { return ::suffixed##f(x); } \
  __host__ __device__ inline double name(double x) { return ::suffixed(x); }
#define LAMELLA_MATH_OF_TWO(name, suffixed)                                               \
  __host__ __device__ inline float name(float a, float b) { return ::suffixed##f(a, b); } \
  __host__ __device__ inline double name(double a, double b) { return ::suffixed(a, b); }

namespace c10::cuda::compat {
LAMELLA_MATH_OF(abs, fabs)
LAMELLA_MATH_OF(exp, exp)
LAMELLA_MATH_OF(rint, rint)
LAMELLA_MATH_OF(ceil, ceil)
LAMELLA_MATH_OF(floor, floor)
LAMELLA_MATH_OF(log, log)
LAMELLA_MATH_OF(log1p, log1p)
LAMELLA_MATH_OF(sqrt, sqrt)
LAMELLA_MATH_OF(rsqrt, rsqrt)
LAMELLA_MATH_OF(sin, sin)
LAMELLA_MATH_OF(cos, cos)
LAMELLA_MATH_OF(tan, tan)
LAMELLA_MATH_OF(tanh, tanh)
LAMELLA_MATH_OF(normcdf, normcdf)
LAMELLA_MATH_OF_TWO(copysign, copysign)
LAMELLA_MATH_OF_TWO(max, fmax)
LAMELLA_MATH_OF_TWO(min, fmin)
LAMELLA_MATH_OF_TWO(pow, pow)
__host__ __device__ inline float div(float a, float b) { return a / b; }
__host__ __device__ inline double div(double a, double b) { return a / b; }
}  // namespace c10::cuda::compat
#undef LAMELLA_MATH_OF
#undef LAMELLA_MATH_OF_TWO
#endif
