// Loads the backend of CUDA at first use. Internal.
//
// Note [CUDA at first use]
//   liblamella_cuda.so lies beside liblamella.so and registers the devices "cuda". It is loaded
//   when a device of that type is first asked for and no part of a backend is registered for the
//   type. Programs that never ask pay nothing, and those that bring a backend for the type keep it.
#pragma once
#include <cstddef>
#include <string>

#include "lamella/core/macros.h"

namespace lamella {

// Loads the library, once; a failure is kept for cuda_obstacle().
LAMELLA_PRIVATE_API void load_cuda();
// "there is no CUDA: libcuda.so.1: cannot open ...", after load_cuda().
LAMELLA_PRIVATE_API std::string cuda_obstacle();

// The folders of a language's packages, separated by ':', in which NVIDIA's libraries may be.
LAMELLA_PRIVATE_API void set_package_folders(const std::string& folders);
LAMELLA_PRIVATE_API std::string package_folders();

// Memory of the host that devices copy from and to beside other work, for factories of CPU tensors.
struct PinnedMemory {
  void* (*allocate)(size_t bytes, void** block);
  void (*free)(void* block);
};
LAMELLA_PRIVATE_API void set_pinned_memory(const PinnedMemory* memory);
// Loads CUDA. NULL: there is none.
LAMELLA_PRIVATE_API const PinnedMemory* load_pinned_memory();

}  // namespace lamella
