// The families of operators that move elements: each registers those that have kernels.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

void register_index(Library& aten);
void register_select(Library& aten);
void register_sort(Library& aten);
void register_attention(Library& aten);
void register_windows(Library& aten);
void register_optimizer(Library& aten);
void register_composites(Library& aten);

// Whether results must not vary from run to run: Note [Sums in order] in kernels/index.h.
bool is_deterministic();
void set_deterministic(bool deterministic);

}  // namespace lamella::cuda
