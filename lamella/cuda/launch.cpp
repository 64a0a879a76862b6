// Loads the images of kernels into the devices' contexts and launches kernels.
#include "lamella/cuda/launch.h"

#include <bit>
#include <cstring>
#include <string>
#include <unordered_map>

#include "lamella/core/error.h"
#include "lamella/cuda/graphs.h"
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
#include LAMELLA_IMAGE_LIST
#undef LAMELLA_IMAGE
#define LAMELLA_IMAGE(name) lamella_image_##name,
const char* const images[] = {
#include LAMELLA_IMAGE_LIST
};
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
  std::unordered_map<std::string, void*> kernels, programs;
};
DeviceKernels* const kernels_of = new DeviceKernels[kMostDevices];

}  // namespace

const char* suffix_of_kind(int kind) {
  static constexpr const char* kSuffixes[] = {"b8",  "u8",  "i8",  "i16", "i32",
                                              "i64", "f32", "f64", "f16", "bf16",
                                              "u16", "u32", "u64", "c64", "c128"};
  return kind < 0 ? nullptr : kSuffixes[kind];
}
const char* suffix_of_type(ScalarType dtype) {
  const int kind = kind_of(dtype);
  return kind <= kBF16 ? suffix_of_kind(kind) : nullptr;
}
const char* suffix_of_bytes(size_t bytes) {
  static constexpr const char* kSuffixes[] = {"b1", "b2", "b4", "b8", "b16"};
  return bytes <= 16 && std::has_single_bit(bytes) ? kSuffixes[std::countr_zero(bytes)] : nullptr;
}

void* find_kernel(int device, const char* name) {
  DeviceKernels& all = kernels_of[device];
  std::lock_guard lock(all.mutex);
  auto [at, is_new] = all.kernels.try_emplace(name, nullptr);
  if (!is_new) return at->second;
  for (int i = 0; i < kImages && at->second == nullptr; ++i) {
    if (all.modules[i] == nullptr) {
      RelaxedCapture relaxed;
      CUDA_CALL(cuModuleLoadData, &all.modules[i], images[i]);
    }
    const int result = Driver::functions().cuModuleGetFunction(&at->second, all.modules[i], name);
    if (result == kNotFound) {
      at->second = nullptr;
    } else {
      Driver::check(result, "cuModuleGetFunction");
    }
  }
  return at->second;
}

void* find_kernel(int device, const char* name, const char* suffix) {
  // What was found last, by a sum of the name's bytes.
  struct Known {
    char name[40];
    int device;
    void* kernel;
  };
  static thread_local Known known[128];
  char full[sizeof(known->name)] = {};
  const size_t length = std::strlen(name), more = std::strlen(suffix);
  if (length + more + 2 > sizeof(full)) return find_kernel(device, str(name, "_", suffix).c_str());
  std::memcpy(full, name, length);
  if (more != 0) {
    full[length] = '_';
    std::memcpy(full + length + 1, suffix, more);
  }
  uint64_t sum = static_cast<uint64_t>(device), words[sizeof(full) / 8];
  std::memcpy(words, full, sizeof(full));
  for (uint64_t word : words) sum = (sum ^ word) * 0x9E3779B97F4A7C15;
  Known& at = known[sum >> 57];
  if (at.kernel == nullptr || at.device != device ||
      std::memcmp(at.name, full, sizeof(full)) != 0) {
    at.kernel = find_kernel(device, full);
    at.device = device;
    std::memcpy(at.name, full, sizeof(full));
  }
  return at.kernel;
}

void* load_kernel(int device, const char* image, const char* name) {
  DeviceKernels& all = kernels_of[device];
  std::lock_guard lock(all.mutex);
  void*& module = all.programs[image];
  if (module == nullptr) {
    RelaxedCapture relaxed;
    CUDA_CALL(cuModuleLoadData, &module, image);
  }
  void* kernel = nullptr;
  CUDA_CALL(cuModuleGetFunction, &kernel, module, name);
  return kernel;
}

void launch(int device, void* kernel, const char* name, const void* parameters, int64_t items) {
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

bool launch_named(int device, const char* name, const char* suffix, const void* parameters,
                  const Shape& shape) {
  void* kernel = suffix != nullptr ? find_kernel(device, name, suffix) : nullptr;
  if (kernel != nullptr) launch(device, kernel, name, parameters, shape);
  return kernel != nullptr;
}
bool launch_named(int device, const char* name, const char* suffix, const void* parameters,
                  int64_t items) {
  if (suffix == nullptr) return false;
  if (items == 0) return true;
  void* kernel = find_kernel(device, name, suffix);
  if (kernel != nullptr) launch(device, kernel, name, parameters, items);
  return kernel != nullptr;
}

void copy_bytes(int device, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  StreamHandle stream = handle_of(device, current().streams[device]);
  CUDA_CALL(cuMemcpyDtoDAsync_v2, reinterpret_cast<Address>(to), reinterpret_cast<Address>(from),
            bytes, stream);
  after_launch(device, stream);
}

}  // namespace lamella::cuda
