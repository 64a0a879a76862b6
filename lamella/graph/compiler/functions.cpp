// Functions of vectors as inline LLVM instructions, so that loops keep their constants in registers
// and the calculations of several vectors overlap. See Note [Functions in instructions].
#include <llvm/IR/MDBuilder.h>

#include "lamella/graph/compiler/emitted_value.h"
#include "lamella/graph/compiler/emitter.h"
#include "lamella/kernels/cpu/simd/activation.h"
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"

namespace lamella::hlo::compiler {
namespace {

template <class T>
llvm::Value* function_of_vectors(std::string_view name, llvm::ArrayRef<llvm::Value*> x) {
  using V = EmittedValue<T>;
  struct Unary {
    const char* name;
    V (*emit)(V);
  };
  static constexpr Unary kUnary[] = {
      {"cos", native::v_cos},
      {"erf", native::v_erf},
      {"exp", native::v_exp},
      {"exp2", native::v_exp2},
      {"expm1", native::v_expm1},
      {"gelu", native::v_gelu},
      {"log", native::v_log},
      {"gelu_tanh", native::v_gelu_tanh},
      {"log10", native::v_log10},
      {"log1p", native::v_log1p},
      {"gelu_bfloat16", native::v_gelu_bfloat16},
      {"gelu_half", native::v_gelu_half},
      {"log2", native::v_log2},
      {"logit", native::v_logit},
      {"mish", native::v_mish},
      {"sigmoid", native::v_sigmoid},
      {"sin", native::v_sin},
      {"tanh", native::v_tanh},
  };
  struct Binary {
    const char* name;
    V (*emit)(V, V);
  };
  static constexpr Binary kBinary[] = {
      {"gelu_backward", native::v_gelu_backward},
      {"gelu_tanh_backward", native::v_gelu_tanh_backward},
      {"mish_backward", native::v_mish_backward},
  };
  for (const Unary& function : kUnary) {
    if (x.size() == 1 && function.name == name) return function.emit(V(x[0])).v;
  }
  for (const Binary& function : kBinary) {
    if (x.size() == 2 && function.name == name) return function.emit(V(x[0]), V(x[1])).v;
  }
  return nullptr;
}

}  // namespace

llvm::Value* Emitter::instructions_of(const char* name, llvm::ArrayRef<llvm::Value*> x) {
  // LLVM takes a millisecond for each, and longer the more there are, as their constants live
  // all through the function; so programs of many steps call the kernels.
  constexpr int kMaxInline = 32, kMaxInlineInLongLoops = 192;
  int most = is_short_loop ? kMaxInline : kMaxInlineInLongLoops;
  if (vector_bytes < 32 || inline_functions_ >= most) return nullptr;
  Emission emission(*this);
  llvm::Value* result = x[0]->getType()->getScalarType()->isFloatTy()
                            ? function_of_vectors<float>(name, x)
                            : function_of_vectors<double>(name, x);
  inline_functions_ += result != nullptr ? 1 : 0;
  if (emission.rare == nullptr) return result;
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* far = llvm::BasicBlock::Create(context, "far", before->getParent());
  auto* after = llvm::BasicBlock::Create(context, "near", before->getParent());
  b.CreateCondBr(b.CreateOrReduce(emission.rare), far, after,
                 llvm::MDBuilder(context).createBranchWeights(1, 1000));
  b.SetInsertPoint(far);
  llvm::Value* called = call_kernel(name, x);
  b.CreateBr(after);
  b.SetInsertPoint(after);
  llvm::PHINode* chosen = b.CreatePHI(x[0]->getType(), 2);
  chosen->addIncoming(result, before);
  chosen->addIncoming(called, far);
  return chosen;
}

}  // namespace lamella::hlo::compiler
