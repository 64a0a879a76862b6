// Helpers that the formulas of all families share. Internal.
#pragma once
#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"
#include "lamella/layers/autograd/formulas/views.h"

namespace lamella {

// The real part; a real tensor is itself.
Tensor real_of(const Tensor& x);
// True if values that a backward computes from x may be differentiated again: they are recorded, or
// x carries a tangent. A formula must then be built from x itself; otherwise it may use results
// without a derivative, such as factors of a decomposition.
bool differentiated_again(const Tensor& x);
// x where the condition holds, 0 elsewhere. Both broadcast.
Tensor keep(const Tensor& x, const Tensor& condition);
// `sum` may be undefined, which is zero.
inline void add_to(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; }

}  // namespace lamella
