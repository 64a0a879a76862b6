// Kernels of the embedded images, by name.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lamella::cuda {

// The kernel on a device, whose context must be current; NULL if no image has it.
void* find_kernel(int device, const char* name);
// The same for a name and a suffix, joined by "_" if there is one; for every launch.
void* find_kernel(int device, const char* name, const char* suffix);
// A kernel of an image that a program brings. Equal images are loaded once, and stay loaded.
void* load_kernel(int device, const char* image, const char* name);
// Launches a kernel of one parameter, a structure, on the current stream, with `items` or fewer
// threads. The device's context must be current; `name` must live on.
void launch(int device, void* kernel, const char* name, void* parameters, int64_t items);

// The blocks of a launch, the threads of a block, and the bytes of its dynamic shared memory. Grids
// have at most 2^31 - 1 blocks along x, 65535 along y and z.
struct Shape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
};
// Launches a kernel of blocks: Note [Kernels of blocks] in kernels/device.h.
void launch(int device, void* kernel, const char* name, const void* parameters, const Shape& shape);
// Copies memory of the device on the current stream; the device's context must be current.
void copy_bytes(int device, void* to, const void* from, size_t bytes);

}  // namespace lamella::cuda
