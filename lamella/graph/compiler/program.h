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
#include <unordered_map>
#include <vector>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {

// Note [Shared units]
//   Units of one form (see UnitForm), such as those of a network's equal layers, share a function
//   from the third one on. It takes a table of the addresses of its arrays. So the time of
//   compiling a program of equal parts is that of one part, and a call for each of the others.
struct SharedUnit {
  int count = 0;  // how many units have the form
  llvm::Function* function = nullptr;
  bool may_fail = false;  // true if the function may return 1
  // Places behind those of the form, in the temporary memory of the region that made the function,
  // which alone may call it if there are some.
  std::vector<Place> own_places;
  const void* made_by = nullptr;
};
using SharedUnits = std::unordered_map<std::string, SharedUnit>;

// Emits the function `name` of the region into the module, whose regions share `units`. Returns
// what the executor must know of the function, except its address.
MachineCode emit_region(llvm::Module& module, const std::string& name, const Region& region,
                        int vector_bytes, SharedUnits* units);

}  // namespace lamella::hlo::compiler
