// Entry point of liblamella_compiler.so, which compiles regions with LLVM. Loading the library
// registers its compiler.
#include <llvm/IR/LLVMContext.h>

#include "lamella/graph/compiler/device_code.h"
#include "lamella/graph/compiler/object_file.h"
#include "lamella/graph/compiler/program.h"
#include "lamella/graph/compiler/session.h"
#include "lamella/graph/compiler/vector_functions.h"

namespace lamella::hlo::compiler {

namespace {

class LlvmCompiler final : public MachineCompiler {
 public:
  CodeImage compile(std::span<const Region* const> regions) override {
    llvm::LLVMContext context;
    llvm::Module module("lamella", context);
    set_target(module);
    CodeImage image;
    std::vector<std::string> names;
    SharedUnits units;
    int vector_bytes = vector_functions(code_capability()).bytes;
    for (const Region* region : regions) {
      names.push_back(str("region_", names.size()));
      image.regions.push_back(emit_region(module, names.back(), *region, vector_bytes, &units));
    }
    make_code(module, names, &image);
    return image;
  }
  std::optional<CodeImage> compile_for_device(std::span<const Region* const> regions) override {
    return device_code(regions);
  }
  std::string object_file(const ObjectContents& contents) override {
    llvm::LLVMContext context;
    llvm::Module module(contents.function, context);
    set_target(module);
    emit_program(module, contents);
    return make_object(module);
  }
};

[[maybe_unused]] const bool registered = [] {
  static LlvmCompiler one;
  set_machine_compiler(&one, opcode_table());
  return true;
}();

}  // namespace
}  // namespace lamella::hlo::compiler
