// The families of operators: each registers those that have kernels, libraries or compositions.
// Calls that these do not serve fall back to the CPU.
#pragma once
#include "lamella/cuda/backend.h"
#include "lamella/kernels/device_kernels.h"

namespace lamella::cuda {

// The first three return the part of DeviceKernels that the CPU's own operators call.
const native::DeviceLoops* register_pointwise(Library& aten);  // with copies and fills
// Reductions, scans, softmax, norms, losses.
const native::DeviceLines* register_lines(Library& aten);
// Products, convolutions, transforms, factorisations.
const native::DeviceMath* register_math(Library& aten);
void register_index(Library& aten);
void register_select(Library& aten);
void register_sort(Library& aten);
void register_attention(Library& aten);
void register_windows(Library& aten);
void register_optimizer(Library& aten);
void register_composites(Library& aten);
void register_random(Library& aten);  // with dropout

// Runs an operator's kernel of the CPU on tensors of the device; if that says that it is not
// implemented for them, on the CPU.
lamella_status run_structured(const lamella_kernel* kernel, const lamella_operator* op,
                              uint64_t key_set, const lamella_value* arguments,
                              lamella_value* returns) noexcept;

// Whether results must not vary from run to run: Note [Sums in order] in kernels/index.h.
bool is_deterministic();
void set_deterministic(bool deterministic);

}  // namespace lamella::cuda
