// The kernels' functions of vectors as functions with addresses. Compiled once per CPU capability.
#include "lamella/graph/compiler/vector_functions.h"

#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/inverse_trigonometric.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/power.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::hlo::compiler {
namespace {

using native::VecD;
using native::VecF;

#define LAMELLA_FUNCTIONS(one, two)                                                                \
  one(acos) one(acosh) one(asin) one(asinh) one(atan) one(atanh) one(cos) one(cosh) one(erf)       \
      one(erfc) one(erfinv) one(exp) one(exp2) one(expm1) one(log) one(log10) one(log1p) one(log2) \
          one(sigmoid) one(sin) one(sinh) one(tan) one(tanh) two(atan2) two(fmod) two(pow)

#define LAMELLA_ONE(name)                                   \
  VecF name##_float(VecF x) { return native::v_##name(x); } \
  VecD name##_double(VecD x) { return native::v_##name(x); }
#define LAMELLA_TWO(name)                                              \
  VecF name##_float(VecF x, VecF y) { return native::v_##name(x, y); } \
  VecD name##_double(VecD x, VecD y) { return native::v_##name(x, y); }
LAMELLA_FUNCTIONS(LAMELLA_ONE, LAMELLA_TWO)
#undef LAMELLA_ONE
#undef LAMELLA_TWO

#define LAMELLA_ONE(name)                                                        \
  {#name, 1, reinterpret_cast<void*>(static_cast<VecF (*)(VecF)>(name##_float)), \
   reinterpret_cast<void*>(static_cast<VecD (*)(VecD)>(name##_double))},
#define LAMELLA_TWO(name)                                                              \
  {#name, 2, reinterpret_cast<void*>(static_cast<VecF (*)(VecF, VecF)>(name##_float)), \
   reinterpret_cast<void*>(static_cast<VecD (*)(VecD, VecD)>(name##_double))},
const VectorFunction kFunctions[] = {LAMELLA_FUNCTIONS(LAMELLA_ONE, LAMELLA_TWO)};

}  // namespace

#define LAMELLA_JOIN(a, b) a##b
#define LAMELLA_NAME(capability) LAMELLA_JOIN(vector_functions_, capability)
VectorFunctions LAMELLA_NAME(LAMELLA_CAPABILITY)() { return {native::kVecBytes, kFunctions}; }

}  // namespace lamella::hlo::compiler
