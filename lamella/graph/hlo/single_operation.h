// Recognizes reducers that consist of one operation.
#pragma once
#include <optional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The opcode of a reducer whose root is one commutative and associative operation on its two
// parameters; otherwise nullopt.
std::optional<Opcode> single_operation(const Computation& computation);

}  // namespace lamella::hlo
