// Finds and loads the compiler library.
#include "lamella/graph/execute/machine_code.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "lamella/core/allocator.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/graph/custom_call/function_call.h"

namespace lamella::hlo {
namespace {

std::atomic<MachineCompiler*> compiler{nullptr};
std::atomic<uint64_t> table_of_compiler{opcode_table()};

std::string library_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fname : "";
}
const void* own_address() { return reinterpret_cast<const void*>(&machine_compiler); }
// The compiler library is in the folder of this library.
std::string compiler_path() {
  std::string own = library_of(own_address());
  own.resize(own.rfind('/') == std::string::npos ? 0 : own.rfind('/') + 1);
  return own + "liblamella_compiler.so";
}

bool may = false;
std::atomic<const std::string*> problem{nullptr};
fork::Once looked, loaded;

}  // namespace

void set_machine_compiler(MachineCompiler* one, uint64_t table) {
  table_of_compiler.store(table, std::memory_order_release);
  compiler.store(one, std::memory_order_release);
}

bool may_have_machine_compiler() {
  looked([] {
    const char* text = std::getenv("LAMELLA_COMPILER");
    bool wanted = text == nullptr || std::string_view(text) != "0";
    may = wanted && access(compiler_path().c_str(), R_OK) == 0;
    if (wanted && !may) {
      problem = new std::string(
          "this build has no liblamella_compiler.so, which is made where LLVM 19 is installed "
          "(Debian: llvm-19-dev)");
    }
  });
  return may;
}

MachineCompiler* machine_compiler() {
  if (!may_have_machine_compiler()) return nullptr;
  loaded([] {
    if (dlopen(compiler_path().c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
    problem = new std::string(str(dlerror(), " (Debian: libllvm19)"));
  });
  LAMELLA_CHECK(table_of_compiler.load(std::memory_order_acquire) == opcode_table(),
                "compiler: expected ", compiler_path(), " of the same version as ",
                library_of(own_address()), ", got one with other opcodes");
  return compiler.load(std::memory_order_acquire);
}

std::string compiler_problem() {
  const std::string* found = problem.load(std::memory_order_acquire);
  return found != nullptr ? *found : "";
}

const char* emitted_kernel(Opcode opcode) {
#define LAMELLA_EMITTED_Kernel(name) #name
#define LAMELLA_EMITTED_Intrinsic(name) nullptr
#define LAMELLA_EMITTED_Own nullptr
  static constexpr const char* kKernels[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, ...)                                         \
  LAMELLA_EMITTED_##emitted,
#include "lamella/graph/hlo/opcode.def"
  };
  return kKernels[static_cast<size_t>(opcode)];
}
bool is_emitted_on_device(const Instruction& i) {
  const char* function = function_call(i);
  if (function == nullptr && is_floating(i.operand_shape(0).element_type())) {
    function = emitted_kernel(i.opcode);
  }
  if (function == nullptr) return i.opcode != Opcode::Cbrt;
#define LAMELLA_EMITTED(name, operands, on_device) \
  if (std::string_view(function) == #name) return on_device;
#include "lamella/graph/execute/emitted_functions.def"
  return false;
}

std::vector<std::string> compiler_libraries() {
  return {library_of(own_address()), library_of(reinterpret_cast<const void*>(&cpu_allocate)),
          compiler_path()};
}

}  // namespace lamella::hlo
