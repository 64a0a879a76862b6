// The passes that a module goes through before it is planned.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// A module after all passes, and what they did, as lines for people: how many instructions each
// pass changed. Null and empty where there is nothing to change.
struct Rewritten {
  std::unique_ptr<Module> module;
  std::string notes;
};
// Constants of the result are those of the given module, which must live as long. `is_native` says
// of a computation whether calls of it may be replaced by it, until there are `most` instructions;
// `native` whether machine code will be made of what can be, and `is_code` of an instruction
// whether it will be made of that.
//
// After each pass that changed it the module is verified in builds that check themselves, and
// written to the folder that LAMELLA_DUMP_HLO names.
Rewritten run_passes(const Module& given, int64_t most, bool native,
                     const std::function<bool(const Computation&)>& is_native,
                     const std::function<bool(const Instruction&)>& is_code);

}  // namespace lamella::hlo
