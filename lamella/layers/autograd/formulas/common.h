// Helpers that the formulas of all families share. Internal.
#pragma once
#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/layers/autograd/formulas/views.h"

namespace lamella {

// The real part; a real tensor is itself.
Tensor real_of(const Tensor& x);
// x where the condition holds, 0 elsewhere. Both broadcast.
Tensor keep(const Tensor& x, const Tensor& condition);

}  // namespace lamella
