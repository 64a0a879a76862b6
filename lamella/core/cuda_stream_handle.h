// The driver's handles of the streams of devices "cuda", for code that does not link
// liblamella_cuda.so. Internal.
#pragma once
#include <dlfcn.h>

#include "lamella/core/stream.h"

namespace lamella {

// A function of liblamella_cuda.so, which was loaded with the first tensor on a device; NULL if it
// was not: another library may bring such devices.
template <class Function>
Function find_cuda_function(const char* name) {
  void* library = dlopen("liblamella_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto found = reinterpret_cast<Function>(dlsym(library, name));
  dlclose(library);
  return found;
}

// The driver's handle of the thread's current stream. The call makes the device's context current.
inline void* current_cuda_stream(Device device) {
  const int64_t number = current_stream(device).id();
  auto handle =
      find_cuda_function<lamella_status (*)(int, int64_t, int64_t*)>("lamella_cuda_stream_handle");
  auto enter = find_cuda_function<lamella_status (*)(int)>("lamella_cuda_enter");
  // Other backends number their streams by handles.
  if (handle == nullptr || enter == nullptr) return reinterpret_cast<void*>(number);
  int64_t found = 0;
  detail::check(enter(device.index()));
  detail::check(handle(device.index(), number, &found));
  return reinterpret_cast<void*>(found);
}

}  // namespace lamella
