// Copies of computations from one module into another.
#pragma once
#include <string_view>
#include <unordered_map>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Copies a computation with all that it calls into the module, and remembers in `copied` what
// became of each computation, so that each is copied once. Names that the module has already get a
// number. With `share_literals` constants are those of the other module, which then must live as
// long.
Computation* copy_computation(Module& to, const Computation& from,
                              std::unordered_map<const Computation*, Computation*>& copied,
                              bool share_literals = false);

}  // namespace lamella::hlo
