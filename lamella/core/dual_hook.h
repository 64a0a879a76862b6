// Tensors with tangents, where the vmap layer meets them. Internal: autograd sets the hook.
//
// Note [Tangents of more levels]
//   Inside vmap, a tensor that is the same for all examples may have a tangent for each of them, as
//   the columns of a Jacobian do. Autograd carries such tangents along, and computes the values but
//   once. Where the tensor meets one that is batched at that level, it is exposed first, so that
//   below the level both the tensor and its tangent have the batch as a dimension.
#pragma once
#include <utility>

#include "lamella/core/tensor_base.h"

namespace lamella {

// The tensor, which is not batched at the level, with the batch as its dimension 0, and its tangent
// alike; undefined where the tangent is not batched at the level either.
using ExposeDual = TensorBase (*)(const TensorBase& t, const std::pair<uint32_t, int64_t>& level);
LAMELLA_PRIVATE_API void set_expose_dual(ExposeDual hook);
LAMELLA_PRIVATE_API ExposeDual expose_dual();

// Told of each view that is made, while a forward level is open: a tensor whose first tangent comes
// by a write gives its views their parts of it. NULL: nobody is told.
using ViewWatch = void (*)(const TensorBase& view);
LAMELLA_PRIVATE_API void watch_views(ViewWatch watch);

}  // namespace lamella
