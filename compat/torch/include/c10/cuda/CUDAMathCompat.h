// c10::cuda::compat: functions of elements by one name for float and double.
#pragma once
#include <c10/macros/Macros.h>

#include <cmath>

#include "lamella/core/for_each.h"

#ifdef __CUDACC__
#define LAMELLA_MATH_OF(name, suffixed)                                       \
  __host__ __device__ inline float name(float x) { return ::suffixed##f(x); } \
  __host__ __device__ inline double name(double x) { return ::suffixed(x); }
#define LAMELLA_MATH_OF_NAME(name) LAMELLA_MATH_OF(name, name)
#define LAMELLA_MATH_OF_TWO(name, suffixed)                                               \
  __host__ __device__ inline float name(float a, float b) { return ::suffixed##f(a, b); } \
  __host__ __device__ inline double name(double a, double b) { return ::suffixed(a, b); }

namespace c10::cuda::compat {
LAMELLA_MATH_OF(abs, fabs)
LAMELLA_FOR_EACH(LAMELLA_MATH_OF_NAME, exp, rint, ceil, floor, log, log1p, sqrt, rsqrt, sin, cos,
                 tan, tanh, normcdf)
LAMELLA_MATH_OF_TWO(copysign, copysign)
LAMELLA_MATH_OF_TWO(max, fmax)
LAMELLA_MATH_OF_TWO(min, fmin)
LAMELLA_MATH_OF_TWO(pow, pow)
__host__ __device__ inline float div(float a, float b) { return a / b; }
__host__ __device__ inline double div(double a, double b) { return a / b; }
}  // namespace c10::cuda::compat
#undef LAMELLA_MATH_OF
#undef LAMELLA_MATH_OF_NAME
#undef LAMELLA_MATH_OF_TWO
#endif
