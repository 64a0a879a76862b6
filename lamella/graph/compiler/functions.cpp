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
  struct Function {
    std::string_view name;
    V (*unary)(V);
    V (*binary)(V, V);
  };
#define LAMELLA_EMITTED_Unary(name) {#name, native::v_##name, nullptr}
#define LAMELLA_EMITTED_Binary(name) {#name, nullptr, native::v_##name}
#define LAMELLA_EMITTED(name, operands, on_device) LAMELLA_EMITTED_##operands(name),
  static constexpr Function kFunctions[] = {
#include "lamella/graph/execute/emitted_functions.def"
  };
#undef LAMELLA_EMITTED_Unary
#undef LAMELLA_EMITTED_Binary
  for (const Function& function : kFunctions) {
    if (function.name != name) continue;
    return function.unary != nullptr ? function.unary(V(x[0])).v
                                     : function.binary(V(x[0]), V(x[1])).v;
  }
  return nullptr;
}

}  // namespace

llvm::Value* Emitter::instructions_of(const char* name, llvm::ArrayRef<llvm::Value*> x) {
  // LLVM takes a millisecond for each, and longer the more there are, as their constants live
  // all through the function; so programs of many steps call the kernels.
  constexpr int kMaxInline = 32, kMaxInlineInLongLoops = 192;
  int most = is_short_loop ? kMaxInline : kMaxInlineInLongLoops;
  if (!on_device && (vector_bytes < 32 || body->inline_functions >= most)) return nullptr;
  Emission emission(*this);
  llvm::Value* result = x[0]->getType()->getScalarType()->isFloatTy()
                            ? function_of_vectors<float>(name, x)
                            : function_of_vectors<double>(name, x);
  body->inline_functions += result != nullptr ? 1 : 0;
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
