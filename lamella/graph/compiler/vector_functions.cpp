// The kernels' functions of vectors as functions with addresses. Compiled once per CPU capability.
#include "lamella/graph/compiler/vector_functions.h"

#include <type_traits>

#include "lamella/kernels/cpu/simd/activation.h"
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

template <class V, class F>
void* address_of(F f) {
  if constexpr (std::is_invocable_v<F, V>) {
    return reinterpret_cast<void*>(static_cast<V (*)(V)>(f));
  } else {
    return reinterpret_cast<void*>(static_cast<V (*)(V, V)>(f));
  }
}
template <class F>
VectorFunction function_of(const char* name, F f) {
  return {name, std::is_invocable_v<F, VecF> ? 1 : 2, address_of<VecF>(f), address_of<VecD>(f)};
}

// Those of opcodes whose column `emitted` is Kernel(name).
#define LAMELLA_EMITTED_Kernel(name)                                     \
  function_of(#name, [](auto... x) -> decltype(native::v_##name(x...)) { \
    return native::v_##name(x...);                                       \
  }),
#define LAMELLA_EMITTED_Intrinsic(name)
#define LAMELLA_EMITTED_Own
const VectorFunction kFunctions[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, ...)                                         \
  LAMELLA_EMITTED_##emitted
#include "lamella/graph/hlo/opcode.def"
    // Those of operators without an opcode: custom_call/function_call.cpp.
    LAMELLA_EMITTED_Kernel(erfc) LAMELLA_EMITTED_Kernel(erfinv) LAMELLA_EMITTED_Kernel(exp2)
        LAMELLA_EMITTED_Kernel(gelu) LAMELLA_EMITTED_Kernel(gelu_backward)
            LAMELLA_EMITTED_Kernel(gelu_bfloat16) LAMELLA_EMITTED_Kernel(gelu_half)
                LAMELLA_EMITTED_Kernel(gelu_tanh) LAMELLA_EMITTED_Kernel(gelu_tanh_backward)
                    LAMELLA_EMITTED_Kernel(log10) LAMELLA_EMITTED_Kernel(log2)
                        LAMELLA_EMITTED_Kernel(logit) LAMELLA_EMITTED_Kernel(mish)
                            LAMELLA_EMITTED_Kernel(mish_backward)};

}  // namespace

namespace CPU_CAPABILITY {
VectorFunctions vector_functions() { return {native::kVecBytes, kFunctions}; }
}  // namespace CPU_CAPABILITY

}  // namespace lamella::hlo::compiler
