// Custom calls that only annotate the sharding, layout or placement of their operand.
#pragma once
#include <memory>

#include "lamella/graph/custom_call/call.h"

namespace lamella::hlo {

// A call that returns its operand, for targets that annotate sharding, layout or memory space
// ("Sharding", "LayoutConstraint", "annotate_device_placement", ...), or that returns zeros, for
// targets that allocate uninitialized memory ("AllocateBuffer", "CreateBuffer"). NULL for other
// targets. Throws an Error that names the instruction if the shapes of operand and result differ,
// because a module runs as one partition.
std::unique_ptr<PreparedCall> prepare_annotation(const Instruction& instruction);
// Whether the target is one of those that return their operand.
bool is_annotation(const Instruction& instruction);

}  // namespace lamella::hlo
