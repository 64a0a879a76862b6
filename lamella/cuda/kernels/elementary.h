// Elementary functions: those of kernels/cpu/simd, for one number.
#pragma once
#include "lamella/cuda/kernels/functions.h"
#include "lamella/cuda/kernels/lane.h"
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"

namespace lamella::cuda {

#define LAMELLA_ELEMENTARY(Name, ...)                           \
  template <class T>                                            \
  struct Name {                                                 \
    LAMELLA_DEVICE explicit Name(const PointwiseParameters&) {} \
    LAMELLA_DEVICE T operator()(T number) const {               \
      const Lane<T> a(number);                                  \
      return (__VA_ARGS__).v;                                   \
    }                                                           \
  };
LAMELLA_ELEMENTARY(Exp, native::v_exp(a))
LAMELLA_ELEMENTARY(Exp2, native::v_exp2(a))
LAMELLA_ELEMENTARY(Expm1, native::v_expm1(a))
LAMELLA_ELEMENTARY(Sinh, native::v_sinh(a))
LAMELLA_ELEMENTARY(Cosh, native::v_cosh(a))
LAMELLA_ELEMENTARY(Tanh, native::v_tanh(a))
LAMELLA_ELEMENTARY(Sigmoid, native::v_sigmoid(a))
LAMELLA_ELEMENTARY(Log, native::v_log(a))
LAMELLA_ELEMENTARY(Log2, native::v_log2(a))
LAMELLA_ELEMENTARY(Log10, native::v_log10(a))
LAMELLA_ELEMENTARY(Log1p, native::v_log1p(a))
LAMELLA_ELEMENTARY(Sin, native::v_sin(a))
LAMELLA_ELEMENTARY(Cos, native::v_cos(a))
LAMELLA_ELEMENTARY(Tan, native::v_tan(a))
LAMELLA_ELEMENTARY(Erf, native::v_erf(a))
LAMELLA_ELEMENTARY(Erfc, native::v_erfc(a))
LAMELLA_ELEMENTARY(Silu, a* native::v_sigmoid(a))

#define LAMELLA_ELEMENTARY_KERNELS(f)           \
  LAMELLA_KERNELS_FLOAT(f, exp, Exp, 1)         \
  LAMELLA_KERNELS_FLOAT(f, exp2, Exp2, 1)       \
  LAMELLA_KERNELS_FLOAT(f, expm1, Expm1, 1)     \
  LAMELLA_KERNELS_FLOAT(f, sinh, Sinh, 1)       \
  LAMELLA_KERNELS_FLOAT(f, cosh, Cosh, 1)       \
  LAMELLA_KERNELS_FLOAT(f, tanh, Tanh, 1)       \
  LAMELLA_KERNELS_FLOAT(f, sigmoid, Sigmoid, 1) \
  LAMELLA_KERNELS_FLOAT(f, log, Log, 1)         \
  LAMELLA_KERNELS_FLOAT(f, log2, Log2, 1)       \
  LAMELLA_KERNELS_FLOAT(f, log10, Log10, 1)     \
  LAMELLA_KERNELS_FLOAT(f, log1p, Log1p, 1)     \
  LAMELLA_KERNELS_FLOAT(f, sin, Sin, 1)         \
  LAMELLA_KERNELS_FLOAT(f, cos, Cos, 1)         \
  LAMELLA_KERNELS_FLOAT(f, tan, Tan, 1)         \
  LAMELLA_KERNELS_FLOAT(f, erf, Erf, 1)         \
  LAMELLA_KERNELS_FLOAT(f, erfc, Erfc, 1)       \
  LAMELLA_KERNELS_FLOAT(f, silu, Silu, 1)

}  // namespace lamella::cuda
