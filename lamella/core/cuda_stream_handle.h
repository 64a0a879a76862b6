// What liblamella_cuda.so has for code that does not link it: one table of functions. Internal.
#pragma once
#include <dlfcn.h>

#include "lamella/core/stream.h"

namespace lamella {

// Functions return a status; the text of an error is lamella_error_text().
struct CudaTable {
  lamella_status (*enter)(int device);  // makes the device's context current on this thread
  lamella_status (*stream_handle)(int device, int64_t stream, int64_t* handle);
  // Counts a step of a program that ran on the CPU and is no call of an operator.
  void (*count_fallback)(const char* name);
  // Finds a kernel in an image, such as PTX, which is loaded on the device at its first use.
  lamella_status (*load_kernel)(int device, const char* image, const char* name, void** kernel);
  // Launches such a kernel on the current stream. It has one parameter, `parameters`; `name` must
  // live on.
  lamella_status (*launch)(int device, void* kernel, const char* name, const void* parameters,
                           unsigned blocks, unsigned threads);
  // Captured graphs: Note [Captured streams] in lamella/cuda/graphs.h.
  struct Graphs {
    lamella_status (*make)(void** graph);
    lamella_status (*free)(void* graph);
    lamella_status (*begin)(void* graph, int64_t pool, int mode);
    lamella_status (*end)(void* graph, int64_t* nodes);
    lamella_status (*abandon)(void* graph);
    lamella_status (*replay)(void* graph);
    lamella_status (*is_capturing)(int device, int64_t stream, int* captured);
  } graphs;
};

// NULL if the library was not loaded, as it is with the first tensor on a device: another library
// may bring such devices.
inline const CudaTable* cuda_table() {
  void* library = dlopen("liblamella_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* found = static_cast<const CudaTable*>(dlsym(library, "lamella_cuda_table"));
  dlclose(library);
  return found;
}

// The driver's handle of the thread's current stream. The call makes the device's context current.
inline void* current_cuda_stream(Device device) {
  const int64_t number = current_stream(device).id();
  const CudaTable* table = cuda_table();
  // Other backends number their streams by handles.
  if (table == nullptr) return reinterpret_cast<void*>(number);
  int64_t found = 0;
  detail::check(table->enter(device.index()));
  detail::check(table->stream_handle(device.index(), number, &found));
  return reinterpret_cast<void*>(found);
}

}  // namespace lamella
