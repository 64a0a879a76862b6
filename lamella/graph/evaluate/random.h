// The random generator of rng and rng-get-and-update-state.
#pragma once
#include <cstdint>

namespace lamella::hlo {

// The initial value, the same as in XLA's CPU programs, of the 128-bit counter that all modules of
// the process share.
inline constexpr uint64_t kRandomStateAtStart = 0x7012395;
// Sets the counter, so that random numbers can be reproduced.
void set_random_state(uint64_t low, uint64_t high);

}  // namespace lamella::hlo
