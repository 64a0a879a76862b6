// Where the CUDA driver's functions are found: in libcuda.so.1, or in the file that the environment
// variable LAMELLA_CUDA_DRIVER names. The build does not need CUDA. Internal.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace lamella {

// The driver's library, which stays loaded; `handle` is NULL, and `problem` says why, if it cannot
// be loaded.
struct CudaDriverFile {
  const char* name = nullptr;
  void* handle = nullptr;
  std::string problem;

  static CudaDriverFile open() {
    CudaDriverFile file;
    const char* named = std::getenv("LAMELLA_CUDA_DRIVER");
    file.name = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
    file.handle = dlopen(file.name, RTLD_NOW | RTLD_LOCAL);
    if (file.handle == nullptr) {
      const char* why = dlerror();
      file.problem = why != nullptr ? why : file.name;
    }
    return file;
  }
  // NULL if the driver lacks the function.
  void* find(const char* symbol) const { return dlsym(handle, symbol); }
};

}  // namespace lamella
