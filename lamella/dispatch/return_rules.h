// Rules for the returns of every kernel, checked in debug builds and by the composite check only.
// Internal to Lamella.
#pragma once
#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"

namespace lamella {

// Note [Undefined tensors]
//   A backward operator with an argument `bool[N] output_mask` returns an undefined tensor exactly
//   where the mask is false: its i-th return stands for mask[i]. No other operator returns an
//   undefined tensor, unless its schema says `Tensor?`.
//
// Checks owned returns of a boxed call. On failure it releases them all and sets the error text.
LAMELLA_PRIVATE_API lamella_status check_undefined_returns(const lamella_operator* op,
                                                           const lamella_value* arguments,
                                                           lamella_value* returns);

}  // namespace lamella
