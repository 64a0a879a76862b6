// Reducers that are one operation.
#pragma once
#include <optional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The opcode of a reducer that is one operation whose order does not matter.
std::optional<Opcode> single_operation(const Computation& computation);

}  // namespace lamella::hlo
