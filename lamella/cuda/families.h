// The families of operators: each registers those that have kernels, libraries or compositions.
// Calls that these do not serve fall back to the CPU.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

void register_pointwise(Library& aten);  // with copies and fills
void register_lines(Library& aten);      // reductions, scans, softmax, norms, losses
void register_index(Library& aten);
void register_select(Library& aten);
void register_sort(Library& aten);
void register_attention(Library& aten);
void register_windows(Library& aten);
void register_optimizer(Library& aten);
void register_composites(Library& aten);
void register_random(Library& aten);  // with dropout
void register_math(Library& aten);    // products, convolutions, transforms, factorisations

// Runs an operator's kernel of the CPU on tensors of the device; if that says that it is not
// implemented for them, on the CPU.
lamella_status run_structured(const lamella_kernel* kernel, const lamella_operator* op,
                              uint64_t key_set, const lamella_value* arguments,
                              lamella_value* returns) noexcept;

// Whether results must not vary from run to run: Note [Sums in order] in kernels/index.h.
bool is_deterministic();
void set_deterministic(bool deterministic);

}  // namespace lamella::cuda
