// Hooks by which the vmap layer and views handle tensors with tangents. Internal; autograd sets
// them.
//
// Note [Tangents of more levels]
//   Inside vmap, a tensor that is not batched may have a batched tangent, for example when the
//   columns of a Jacobian are computed. Autograd propagates such tangents and computes the values
//   only once. Before the tensor is combined with one that is batched at that level, it is exposed,
//   so that below the level both the tensor and its tangent have the batch as a dimension.
#pragma once
#include <utility>

#include "lamella/core/tensor_base.h"

namespace lamella {

// Returns `t`, which is not batched at the level, with the batch as its dimension 0, and with a
// tangent of that shape; undefined if the tangent is not batched at the level either.
using ExposeDual = TensorBase (*)(const TensorBase& t, const std::pair<uint32_t, int64_t>& level);
LAMELLA_PRIVATE_API void set_expose_dual(ExposeDual hook);
LAMELLA_PRIVATE_API ExposeDual expose_dual();

// Called with each new view while a forward level is open: if a write later gives the base its
// first tangent, its views get their parts of it. NULL: no callback.
using ViewWatch = void (*)(const TensorBase& view);
LAMELLA_PRIVATE_API void watch_views(ViewWatch watch);

}  // namespace lamella
