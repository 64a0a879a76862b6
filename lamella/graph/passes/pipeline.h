// The passes that a module goes through before it is planned.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/passes/opcodes_to_operators.h"

namespace lamella::hlo {

// A module after all passes, and a description of the changes, one line per pass. Null and empty if
// no pass changed anything.
struct Rewritten {
  std::unique_ptr<Module> module;
  std::string notes;
};
// Constants of the result are those of the given module, which must outlive it. `is_native` says
// whether calls of a computation may be inlined, up to `most` instructions; `native`, whether
// machine code will be compiled; `is_code`, whether an instruction will be part of it; `least`,
// from how many elements operators are called.
//
// After each pass that changed it, the module is verified in debug builds, and written to the
// folder LAMELLA_DUMP_HLO if that is set.
Rewritten run_passes(const Module& given, int64_t most, bool native,
                     const std::function<bool(const Computation&)>& is_native,
                     const std::function<bool(const Instruction&)>& is_code,
                     int64_t least = kFewElements);

}  // namespace lamella::hlo
