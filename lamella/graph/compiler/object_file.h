// Programs ahead of time: LLVM's code of the function that runs one.
#pragma once
#include <llvm/IR/Module.h>

#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {

// int name(const void* input, ..., void* output, ...), which hands its arguments and the program to
// lamella_run_program(): see lamella/graph/client/ahead_of_time.h.
void emit_program(llvm::Module& module, const ObjectContents& contents);

}  // namespace lamella::hlo::compiler
