// The interface between the executor and the compiler of machine code.
//
// Note [The compiler is a library of its own]
//   liblamella_compiler.so contains LLVM and is loaded when a module is first compiled. Loading it
//   calls set_machine_compiler(). If it was not built or cannot be loaded there are no regions, and
//   no instruction is compiled. Cached code and code made ahead of time run without it.
//
// Note [Images of devices]
//   Code for a device is an image as well, so that it is kept like any other: its block is PTX,
//   which the driver compiles for the card, and region r has a kernel "region_r_k" for each of its
//   notes, in the order of launches; `may_share` has its blocks and threads instead. A kernel takes
//   the table of addresses that machine code takes as its only parameter, by value.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/graph/execute/code_image.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

// The contents of an object file: a C function that runs a program, and the program.
struct ObjectContents {
  std::string function;
  std::string module_text;
  std::string weights;  // values of the constants that the text leaves out: see set_weights()
  std::string regions;  // digest of the regions; `code` is their image as bytes
  std::string code;
  int inputs = 0;  // arrays, one argument each
  int outputs = 0;
};

class MachineCompiler {
 public:
  virtual ~MachineCompiler() = default;
  // Compiles one function for each region. Throws an Error.
  virtual CodeImage compile(std::span<const Region* const> regions) = 0;
  // The same for a device, of regions whose values are arrays that are not constants, except
  // scalars; nullopt if there is no code generator for it.
  virtual std::optional<CodeImage> compile_for_device(std::span<const Region* const> regions) = 0;
  // Makes an object file for this processor architecture.
  virtual std::string object_file(const ObjectContents& contents) = 0;
};

// True if there is a compiler library to load. LAMELLA_COMPILER=0 disables the compiler.
bool may_have_machine_compiler();
// The compiler, loaded on first use; null if there is none.
MachineCompiler* machine_compiler();
// Why the compiler was not there when it was first asked for; empty if it was, if it was not asked
// for, and if LAMELLA_COMPILER=0 disables it.
std::string compiler_problem();
// A number for the table of opcodes, as code numbers opcodes by their rows.
constexpr uint64_t opcode_table() {
  uint64_t number = 14695981039346656037u;  // FNV-1a of the rows
  for (const char* row : {
#define LAMELLA_HLO_OPCODE(name, text, ...) text,
#include "lamella/graph/hlo/opcode.def"
       }) {
    for (; *row != 0; ++row) number = (number ^ static_cast<uint8_t>(*row)) * 1099511628211u;
    number *= 1099511628211u;
  }
  return number;
}
// Called by the library while it is loaded, with its opcode_table(). The compiler must live as long
// as the process.
void set_machine_compiler(MachineCompiler* compiler, uint64_t table);
// The kernels' function that code computes an opcode of floats by, such as "exp"; null: code has
// instructions of its own for it. Whether code for a device has instructions for an operation, as
// it has no kernels to call.
const char* emitted_kernel(Opcode opcode);
bool is_emitted_on_device(const Instruction& i);
// Paths of those of Lamella's libraries that determine the code of a program.
std::vector<std::string> compiler_libraries();

// ---- The runtime of machine code; defined in lamella/graph/compiler/runtime.cpp ----

// The kernels' CPU capability, 0 to 2.
uint32_t code_capability();
// The address of a function that code of this capability may call; null if the name is unknown.
const void* code_symbol(std::string_view name, uint32_t capability);
// Throws the error that ended a function of machine code on this thread.
[[noreturn]] void throw_pending();

}  // namespace lamella::hlo
