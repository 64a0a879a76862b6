// The driver of pointwise kernels: Note [One loop for each type] in loops.h.
#pragma once
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/tensor_iterator.h"

namespace lamella::native {

// Elements that are converted or gathered at a time.
inline constexpr int64_t kChunk = 512;

// to[...] = from[...], with conversion. Both on the CPU; `from` broadcasts to the shape of `to`.
void copy_converted(const TensorBase& to, const TensorBase& from);

}  // namespace lamella::native
