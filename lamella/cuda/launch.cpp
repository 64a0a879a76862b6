// Loads the images of kernels into the devices' contexts and launches kernels.
#include "lamella/cuda/launch.h"

#include <string>
#include <unordered_map>

#include "lamella/core/error.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {
namespace {

#ifdef LAMELLA_CUDA_IMAGES
#define LAMELLA_IMAGE(name)                                                                    \
  asm(".section .rodata\n.balign 16\nlamella_image_" #name ":\n.incbin \"" LAMELLA_CUDA_IMAGES \
      "/" #name                                                                                \
      ".fatbin\"\n"                                                                            \
      ".previous\n");                                                                          \
  extern "C" const char lamella_image_##name[];
LAMELLA_IMAGE(activation)
LAMELLA_IMAGE(arithmetic)
LAMELLA_IMAGE(elementary)
LAMELLA_IMAGE(factor)
LAMELLA_IMAGE(logic)
LAMELLA_IMAGE(matmul)
const char* const images[] = {lamella_image_activation, lamella_image_arithmetic,
                              lamella_image_elementary, lamella_image_factor, lamella_image_logic, lamella_image_matmul};
#else
// Built without nvcc: a module without kernels, so that every operator falls back to the CPU.
const char* const images[] = {".version 7.0\n.target sm_70\n.address_size 64\n"};
#endif
constexpr int kImages = sizeof(images) / sizeof(images[0]);
constexpr unsigned kBlock = 256;
constexpr unsigned kSharedBytes = 48 << 10;  // that a launch may ask for without an attribute
constexpr int kMaxDynamicShared = 8;         // of CUfunction_attribute

struct DeviceKernels {
  std::mutex mutex;
  void* modules[kImages] = {};
  std::unordered_map<std::string, void*> kernels;
};
DeviceKernels& kernels_of(int device) {
  static auto* all = new DeviceKernels[kMostDevices];
  return all[device];
}

}  // namespace

void* find_kernel(int device, const char* name) {
  DeviceKernels& all = kernels_of(device);
  std::lock_guard lock(all.mutex);
  auto [at, is_new] = all.kernels.try_emplace(name, nullptr);
  if (!is_new) return at->second;
  for (int i = 0; i < kImages && at->second == nullptr; ++i) {
    if (all.modules[i] == nullptr) CUDA_CALL(cuModuleLoadData, &all.modules[i], images[i]);
    const int result = Driver::functions().cuModuleGetFunction(&at->second, all.modules[i], name);
    if (result == kNotFound) {
      at->second = nullptr;
    } else {
      Driver::check(result, "cuModuleGetFunction");
    }
  }
  return at->second;
}

void launch(int device, void* kernel, const char* name, void* parameters, int64_t items) {
  const int64_t most = int64_t{16} * Driver::facts(device).multiprocessors;
  const int64_t blocks = (items + kBlock - 1) / kBlock;
  Shape shape;
  shape.grid[0] = static_cast<unsigned>(blocks < most ? blocks : most);
  shape.block[0] = kBlock;
  launch(device, kernel, name, parameters, shape);
}

void launch(int device, void* kernel, const char* name, const void* parameters,
            const Shape& shape) {
  StreamHandle stream = handle_of(device, current().streams[device]);
  void* list[] = {const_cast<void*>(parameters)};
  if (shape.shared_bytes > kSharedBytes) {
    CUDA_CALL(cuFuncSetAttribute, kernel, kMaxDynamicShared, static_cast<int>(shape.shared_bytes));
  }
  Driver::note_launch(device, name);
  CUDA_CALL(cuLaunchKernel, kernel, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
            shape.block[1], shape.block[2], shape.shared_bytes, stream, list, nullptr);
  after_launch(device, stream);
}

}  // namespace lamella::cuda
