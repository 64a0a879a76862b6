// Devices "cuda" for tests of collectives on machines with GPUs: their memory is CUDA's, and their
// operators run on the CPU, on copies.
#include <cuda_runtime.h>

#include "lamella/backend.h"
#include "lamella/lamella.h"

namespace {

using lamella::DeviceIndex;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw lamella::Error(cudaGetErrorString(status));
}

struct Gpus {
  void* allocate(size_t bytes, DeviceIndex, void**) {
    void* data = nullptr;
    check(cudaMalloc(&data, bytes == 0 ? 1 : bytes));
    return data;
  }
  void deallocate(void* data, size_t, DeviceIndex, void*) { cudaFree(data); }
  // It is in the order of the default stream, which is the current one of every thread here.
  void copy(lamella_place to, lamella_place from, size_t bytes, bool) {
    check(cudaMemcpy(to.data, from.data, bytes, cudaMemcpyDefault));
  }
  DeviceIndex device_count() {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? static_cast<DeviceIndex>(count) : 0;
  }
  DeviceIndex current_device() {
    int device = 0;
    check(cudaGetDevice(&device));
    return static_cast<DeviceIndex>(device);
  }
  void set_device(DeviceIndex device) { check(cudaSetDevice(device)); }
} gpus;
LAMELLA_REGISTER_BACKEND(CUDA, "cuda", gpus)

LAMELLA_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(lamella::CppFunction::makeFromBoxedFunction<&lamella::cpu_fallback>());
}

}  // namespace
