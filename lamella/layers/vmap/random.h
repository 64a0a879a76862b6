// Random numbers under vmap. Internal to Lamella.
//
// Note [Drawing under vmap]
//   While a vmap runs, operators tagged nondeterministic_seeded meet the kernel of VmapMode first,
//   batched arguments or not. For each level, innermost first, it does what the level's
//   `randomness` says:
//     error       raises;
//     different   sees to it that an argument is batched at the level (a factory makes all
//     examples'
//                 tensors at once), so that the operator draws for every example;
//     same        lets the operator draw for one example, and gives every example the result.
//   Then the call goes on as any other, and the operator's rule finds the batch where it is.
//   Composite operators are left alone: the operators that they call draw.
#pragma once
#include "lamella/abi/abi.h"

namespace lamella::vmap {

lamella_status draw(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                    const lamella_value* arguments, lamella_value* returns) noexcept;

}  // namespace lamella::vmap
