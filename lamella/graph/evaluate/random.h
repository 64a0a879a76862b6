// The generator behind rng and rng-get-and-update-state.
#pragma once
#include <cstdint>

namespace lamella::hlo {

// A counter of 128 bits that all modules of the process share; where XLA's CPU programs start too.
inline constexpr uint64_t kRandomStateAtStart = 0x7012395;
// Sets the counter, so that what follows can be had again.
void set_random_state(uint64_t low, uint64_t high);

}  // namespace lamella::hlo
