// Kernels of the embedded images, by name.
#pragma once
#include <cstdint>

namespace lamella::cuda {

// The kernel on a device, whose context must be current; NULL if no image has it.
void* find_kernel(int device, const char* name);
// Launches a kernel of one parameter, a structure, on the current stream, with `items` or fewer
// threads. The device's context must be current; `name` must live on.
void launch(int device, void* kernel, const char* name, void* parameters, int64_t items);

}  // namespace lamella::cuda
