// How the stand-in finds and runs the product's kernels, which libcuda_standin_kernels.so has as
// functions of the host.
#pragma once
#include <cstddef>
#include <cstdint>

namespace standin {

struct Grid {
  unsigned x, y, z;
};
struct Shape {
  Grid grid, block;
  unsigned shared_bytes;  // of dynamic shared memory
};
// Runs all threads of a launch and returns a CUresult.
using RunKernel = int (*)(const char* name, const void* parameters, const Shape& shape);

struct Kernel {
  const char* name;
  size_t parameter_bytes;  // a kernel has one parameter, a structure
  RunKernel run;
  unsigned threads = 1024;     // the most of a block
  const void* body = nullptr;  // of a kernel that came as PTX: ptx.h
};
// The kernel of a name, NULL if there is none: standin_kernel(name, offset). `offset`: what is to
// be added to addresses of device memory.
using FindKernel = const Kernel* (*)(const char* name, intptr_t offset);

// What the library of kernels has for kernels that came as PTX: standin_fibres.
struct FibreFunctions {
  int (*run)(const char* name, void (*body)(const void*), const void* parameters,
             const Shape& shape);
  uint32_t (*special)(int which);  // threadIdx.x, blockIdx.x, blockDim.x, gridDim.x
  void (*barrier)(int line, const char* file);
  uint64_t (*exchange)(unsigned mask, uint64_t value, unsigned lane, int line, const char* file);
  void (*trap)();
};

// In the library of kernels: adds a family's kernels, by an object of static lifetime.
struct AddKernels {
  AddKernels(const Kernel* first, size_t count);
  const Kernel* first;
  size_t count;
  const AddKernels* next;
};

}  // namespace standin
