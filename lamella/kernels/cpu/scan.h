// Running sums, products and sums in logarithms along one dimension.
#pragma once
#include "lamella/core/tensor_base.h"

namespace lamella::native {

enum class Scan { kSum, kProduct, kLogSumExp };
// out[..., i, ...] = the fold of in[..., 0..i, ...]. Same shapes; computed in out's dtype, float32
// in double precision.
void scan(Scan kind, const TensorBase& in, int64_t dim, const TensorBase& out);

}  // namespace lamella::native
