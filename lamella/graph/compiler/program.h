// Program: emits the code of a region: memory, control flow, kernel calls and loops.
//
// Note [What is written to memory]
//   Written to memory are: results of the region; operands of instructions that are not elementwise
//   (products, while loops, branches); results of reductions; and values that would otherwise be
//   calculated more than once at a higher cost than a load. All other values are calculated inside
//   the loops that read them.
//
// Note [Units]
//   A unit writes one value, or several values that walk the same elements: one loop then writes
//   all of them, and values that only this unit reads are not written at all. A unit whose elements
//   form rows may reduce them: it processes one row after the other, in phases, and a phase reads
//   the results of the reductions of earlier phases. So a softmax reads its operand once.
#pragma once
#include <string>
#include <vector>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {

// Emits the function `name` of the region into the module. Returns what the executor must know of
// the function, except its address.
MachineCode emit_region(llvm::Module& module, const std::string& name, const Region& region,
                        int vector_bytes);

}  // namespace lamella::hlo::compiler
