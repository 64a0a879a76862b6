// Custom calls that only say where or how their operand should lie.
#pragma once
#include <memory>

#include "lamella/graph/custom_call/call.h"

namespace lamella::hlo {

// A call that gives its operand, for targets by which programs state shardings, layouts and memory
// spaces ("Sharding", "LayoutConstraint", "annotate_device_placement", ...); memory without
// contents for those that make it ("AllocateBuffer", "CreateBuffer"): zeros here. NULL for other
// targets. Throws an Error that names the instruction where operand and result differ: a module
// runs as one partition.
std::unique_ptr<PreparedCall> prepare_annotation(const Instruction& instruction);

}  // namespace lamella::hlo
