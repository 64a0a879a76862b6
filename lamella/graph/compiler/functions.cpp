// Functions of vectors as inline LLVM instructions, so that loops keep their constants in registers
// and the calculations of several vectors overlap. See Note [Functions in instructions].
#include <llvm/IR/MDBuilder.h>

#include "lamella/graph/compiler/emitted_value.h"
#include "lamella/graph/compiler/emitter.h"
#include "lamella/kernels/cpu/simd/error_function.h"
#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/logarithm.h"
#include "lamella/kernels/cpu/simd/trigonometric.h"

namespace lamella::hlo::compiler {
namespace {

// Null where the function is not emitted but called.
template <class T>
llvm::Value* function_of_vector(Opcode opcode, llvm::Value* argument) {
  EmittedValue<T> x(argument);
  switch (opcode) {
    case Opcode::Cos:
      return native::v_cos(x).v;
    case Opcode::Erf:
      return native::v_erf(x).v;
    case Opcode::Exp:
      return native::v_exp(x).v;
    case Opcode::Expm1:
      return native::v_expm1(x).v;
    case Opcode::Log:
      return native::v_log(x).v;
    case Opcode::Log1p:
      return native::v_log1p(x).v;
    case Opcode::Logistic:
      return native::v_sigmoid(x).v;
    case Opcode::Sin:
      return native::v_sin(x).v;
    case Opcode::Tanh:
      return native::v_tanh(x).v;
    default:
      return nullptr;
  }
}

}  // namespace

llvm::Value* Emitter::instructions_of(Opcode opcode, const char* name, llvm::Value* x) {
  if (vector_bytes < 32) return nullptr;
  Emission emission(*this);
  llvm::Value* result = x->getType()->getScalarType()->isFloatTy()
                            ? function_of_vector<float>(opcode, x)
                            : function_of_vector<double>(opcode, x);
  if (emission.rare == nullptr) return result;
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* far = llvm::BasicBlock::Create(context, "far", before->getParent());
  auto* after = llvm::BasicBlock::Create(context, "near", before->getParent());
  b.CreateCondBr(b.CreateOrReduce(emission.rare), far, after,
                 llvm::MDBuilder(context).createBranchWeights(1, 1000));
  b.SetInsertPoint(far);
  llvm::Value* called = call_kernel(name, {x});
  b.CreateBr(after);
  b.SetInsertPoint(after);
  llvm::PHINode* chosen = b.CreatePHI(x->getType(), 2);
  chosen->addIncoming(result, before);
  chosen->addIncoming(called, far);
  return chosen;
}

}  // namespace lamella::hlo::compiler
