// Random numbers under vmap. Internal to Lamella.
//
// Note [Drawing under vmap]
//   While a vmap runs, operators tagged nondeterministic_seeded reach the kernel of VmapMode first,
//   with or without batched arguments. For each level, innermost first, it acts by the level's
//   `randomness`:
//     error       raises an error;
//     different   makes an argument batched at the level, so that the operator draws for every
//                 example (a factory makes the tensors of all examples at once);
//     same        lets the operator draw for one example and gives every example that result.
//   Then the call is redispatched like any other, to the operator's batching rule if an argument is
//   batched. Composite operators pass through: the operators that they call draw.
#pragma once
#include "lamella/abi/abi.h"

namespace lamella::vmap {

lamella_status draw(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                    const lamella_value* arguments, lamella_value* returns) noexcept;

}  // namespace lamella::vmap
