// How the stand-in finds and runs the product's kernels, which libcuda_standin_kernels.so has as
// functions of the host.
#pragma once
#include <cstddef>
#include <cstdint>

namespace standin {

struct Grid {
  unsigned x, y, z;
};
// Runs all threads of a launch. `offset`: what is to be added to addresses of device memory.
using RunKernel = void (*)(const void* parameters, Grid grid, Grid block);

struct Kernel {
  const char* name;
  size_t parameter_bytes;  // a kernel has one parameter, a structure
  RunKernel run;
};
// The table of a library of kernels: standin_kernels(&count, offset).
using KernelTable = const Kernel* (*)(size_t* count, intptr_t offset);

}  // namespace standin
