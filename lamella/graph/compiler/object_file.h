// Ahead-of-time programs: the LLVM code of the C function that runs one.
#pragma once
#include <llvm/IR/Module.h>

#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {

// Emits int name(const void* input, ..., void* output, ...), which passes its arguments and the
// program to lamella_run_program(): see lamella/graph/client/ahead_of_time.h.
void emit_program(llvm::Module& module, const ObjectContents& contents);

}  // namespace lamella::hlo::compiler
