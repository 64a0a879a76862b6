// liblamella_compiler.so: machine code for regions, by LLVM. Loading it makes it the compiler.
#include <llvm/IR/LLVMContext.h>

#include <atomic>

#include "lamella/graph/compiler/program.h"
#include "lamella/graph/compiler/runtime.h"
#include "lamella/graph/compiler/session.h"
#include "lamella/graph/compiler/vector_functions.h"
#include "lamella/kernels/machine_code.h"

namespace lamella::hlo::compiler {

const VectorFunctions& vector_functions() {
  static const VectorFunctions chosen = [] {
#if defined(__x86_64__)
    switch (native::code_capability()) {
      case 2:
        return vector_functions_AVX512();
      case 1:
        return vector_functions_AVX2();
      default:
        break;
    }
#endif
    return vector_functions_DEFAULT();
  }();
  return chosen;
}

namespace {

class LlvmCompiler final : public MachineCompiler {
 public:
  std::vector<MachineCode> compile(std::span<const Region* const> regions,
                                   std::shared_ptr<const void>* holder) override {
    static std::atomic<int64_t> number{0};
    int64_t own = number++;
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("lamella", *context);
    set_target(*module);
    std::vector<MachineCode> codes;
    std::vector<std::string> names;
    for (size_t r = 0; r < regions.size(); ++r) {
      names.push_back(str("region_", own, "_", r));
      codes.push_back(emit_region(*module, names.back(), *regions[r], vector_functions().bytes));
    }
    std::vector<void*> addresses = make_code(std::move(module), std::move(context), names, holder);
    for (size_t r = 0; r < codes.size(); ++r) {
      codes[r].function = reinterpret_cast<MachineCode::Function>(addresses[r]);
    }
    return codes;
  }
  void throw_pending() override { compiler::throw_pending(); }
};

[[maybe_unused]] const bool registered = [] {
  static LlvmCompiler one;
  set_machine_compiler(&one);
  return true;
}();

}  // namespace
}  // namespace lamella::hlo::compiler
