// What the executor and the compiler of machine code hand to each other.
//
// Note [The compiler is a library of its own]
//   liblamella_compiler.so holds LLVM and is loaded when a module is first compiled. Loading it
//   calls set_compiler(). Where it was not built or cannot be loaded there are no regions, and
//   every instruction is done by its rule.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

struct MachineCode {
  // Gets the arrays of the region's inputs, then those of its outputs, then `temporary_bytes` of
  // memory, then the storages of the inputs' arrays, null where Value::storage() is. Returns 0; or
  // 1 where something failed, which throw_pending() throws.
  using Function = int32_t (*)(void* const* buffers);
  Function function = nullptr;
  int64_t temporary_bytes = 0;
  // Arrays of outputs that may lie in the memory of an array of the inputs: (output, input).
  std::vector<std::pair<uint32_t, uint32_t>> may_share;
  std::vector<std::string> notes;  // what became of the instructions, a line each
};

class MachineCompiler {
 public:
  virtual ~MachineCompiler() = default;
  // One function for each region. `holder` keeps the code; instructions must live as long as this
  // call. Throws an Error.
  virtual std::vector<MachineCode> compile(std::span<const Region* const> regions,
                                           std::shared_ptr<const void>* holder) = 0;
  // Throws what ended a function of this thread.
  [[noreturn]] virtual void throw_pending() = 0;
};

// The compiler, loaded if need be; null where there is none. LAMELLA_COMPILER=0 says that none is
// wanted.
MachineCompiler* machine_compiler();
// Called by the library while it is loaded. The compiler must live as long as the process.
void set_machine_compiler(MachineCompiler* compiler);

}  // namespace lamella::hlo
