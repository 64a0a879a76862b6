// What the executor and the compiler of machine code hand to each other.
//
// Note [The compiler is a library of its own]
//   liblamella_compiler.so holds LLVM and is loaded when a module is first compiled. Loading it
//   calls set_machine_compiler(). Where it was not built or cannot be loaded there are no regions,
//   and every instruction is done by its rule. Code that was kept on disk, or was made ahead of
//   time, runs without it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/graph/execute/code_image.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

// What an object file holds: a function of C that runs a program, and the program.
struct ObjectContents {
  std::string function;
  std::string module_text;
  std::string regions;  // the digest of its regions, and their code: an image as bytes
  std::string code;
  int inputs = 0;  // arrays, one argument each
  int outputs = 0;
};

class MachineCompiler {
 public:
  virtual ~MachineCompiler() = default;
  // One function for each region. Throws an Error.
  virtual CodeImage compile(std::span<const Region* const> regions) = 0;
  // An object file for this kind of processor.
  virtual std::string object_file(const ObjectContents& contents) = 0;
};

// Whether there is a compiler to be loaded. LAMELLA_COMPILER=0 says that none is wanted.
bool may_have_machine_compiler();
// The compiler, loaded if need be; null where there is none.
MachineCompiler* machine_compiler();
// Called by the library while it is loaded. The compiler must live as long as the process.
void set_machine_compiler(MachineCompiler* compiler);
// Paths of Lamella's libraries that say what code is made of a program.
std::vector<std::string> compiler_libraries();

// ---- What code runs on; in lamella/graph/compiler/runtime.cpp, as it is the kernels' ----

// The kernels' CPU capability, 0 to 2.
uint32_t code_capability();
// The address of what code may call, for code of a capability; null where there is no such name.
const void* code_symbol(std::string_view name, uint32_t capability);
// Throws what ended a function of this thread.
[[noreturn]] void throw_pending();

}  // namespace lamella::hlo
