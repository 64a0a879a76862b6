// Tells whether the process has operators with side effects beyond their arguments and results.
#pragma once
#include "lamella/core/macros.h"

namespace lamella {

// True from the first definition on of an operator with the tag side_effect.
LAMELLA_PRIVATE_API bool side_effects_declared() noexcept;
void note_side_effects() noexcept;

}  // namespace lamella
