// The checks of cdist's arguments.
#pragma once
#include "lamella/kernels/native.h"

namespace lamella::native {

// Throws unless the rows of x1 and x2 have distances of order p.
void check_distances(const Tensor& x1, const Tensor& x2, double p,
                     std::optional<int64_t> compute_mode);

}  // namespace lamella::native
