// Loads the CUDA driver's functions and calls them.
//
// Note [One context]
//   A target that launches kernels with the CUDA runtime works in the device's primary context.
//   This file uses the same context, so memory allocated here is valid there. All work uses one
//   stream, which every run waits for before it reads results; runs on several threads share it.
#include "lamella/graph/custom_call/cuda_driver.h"

#include <memory>
#include <type_traits>

#include "lamella/core/cuda_driver.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"

namespace lamella::hlo {

// Signatures of the driver's functions. CUresult and CUdevice are int, handles are pointers, and
// device addresses are 64-bit integers. Names include the version suffix of the interface.
#define LAMELLA_CUDA_FUNCTIONS(f)                                                                 \
  f(init, "cuInit", int (*)(unsigned flags)) f(                                                   \
      device_count, "cuDeviceGetCount", int (*)(int* count)) f(device_get, "cuDeviceGet",         \
                                                               int (*)(int* device, int ordinal)) \
      f(retain, "cuDevicePrimaryCtxRetain", int (*)(void** context, int device)) f(               \
          push, "cuCtxPushCurrent_v2", int (*)(void* context))                                    \
          f(pop, "cuCtxPopCurrent_v2", int (*)(void** context)) f(                                \
              allocate, "cuMemAlloc_v2", int (*)(uint64_t * memory, size_t bytes))                \
              f(free, "cuMemFree_v2", int (*)(uint64_t memory)) f(                                \
                  to_device, "cuMemcpyHtoDAsync_v2",                                              \
                  int (*)(uint64_t device, const void* host, size_t bytes, void* stream))         \
                  f(to_host, "cuMemcpyDtoHAsync_v2",                                              \
                    int (*)(void* host, uint64_t device, size_t bytes, void* stream))             \
                      f(stream_create, "cuStreamCreate", int (*)(void** stream, unsigned flags))  \
                          f(stream_synchronize, "cuStreamSynchronize", int (*)(void* stream))     \
                              f(error_string, "cuGetErrorString",                                 \
                                int (*)(int result, const char** text))

struct CudaDevice::Functions {
#define LAMELLA_CUDA_FIELD(name, symbol, type) std::type_identity_t<type> name;
  LAMELLA_CUDA_FUNCTIONS(LAMELLA_CUDA_FIELD)
#undef LAMELLA_CUDA_FIELD

  static Functions load() {
    CudaDriverFile file = CudaDriverFile::open();
    if (file.handle == nullptr) {
      throw Error(
          str("hlo: expected the CUDA driver for the platform CUDA, got none: ", file.problem));
    }
    Functions found;
    auto find = [&](const char* symbol) {
      void* address = file.find(symbol);
      LAMELLA_CHECK(address != nullptr, "hlo: expected the CUDA driver ", file.name, " to have ",
                    symbol, ", got none");
      return address;
    };
#define LAMELLA_CUDA_FIND(name, symbol, type) found.name = reinterpret_cast<type>(find(symbol));
    LAMELLA_CUDA_FUNCTIONS(LAMELLA_CUDA_FIND)
#undef LAMELLA_CUDA_FIND
    return found;
  }
};

void CudaDevice::check(int result, const char* function) const {
  if (LAMELLA_LIKELY(result == 0)) return;
  const char* text = nullptr;
  if (functions_.error_string(result, &text) != 0 || text == nullptr) text = "unknown error";
  std::string message = str("CUDA: ", function, ": ", text, " (", result, ")");
  if (result == 2) throw OutOfMemoryError(std::move(message));
  throw Error(std::move(message));
}

CudaDevice::CudaDevice(const Functions& functions) : functions_(functions) {
  int count = 0;
  int device = 0;
  try {
    check(functions_.init(0), "cuInit");
    check(functions_.device_count(&count), "cuDeviceGetCount");
  } catch (const Error& error) {
    throw Error(str("hlo: expected a GPU for the platform CUDA, got none: ", error.msg()));
  }
  LAMELLA_CHECK(count > 0, "hlo: expected a GPU for the platform CUDA, got none");
  check(functions_.device_get(&device, 0), "cuDeviceGet");
  check(functions_.retain(&context_, device), "cuDevicePrimaryCtxRetain");
  Scope scope(*this);
  // CU_STREAM_NON_BLOCKING: does not wait for the default stream.
  check(functions_.stream_create(&stream_, 1), "cuStreamCreate");
}

namespace {
fork::Once opened;
}  // namespace

CudaDevice& CudaDevice::get() {
  // Never destroyed, because the driver may be unloaded before static destructors run. A failure is
  // not remembered, so the next module tries again.
  static CudaDevice* device = nullptr;
  opened([] {
    auto functions = std::make_unique<Functions>(Functions::load());
    device = new CudaDevice(*functions);
    functions.release();
  });
  return *device;
}

CudaDevice::Scope::Scope(CudaDevice& device) : device_(device) {
  device_.check(device_.functions_.push(device_.context_), "cuCtxPushCurrent");
}
CudaDevice::Scope::~Scope() {
  void* context;
  device_.functions_.pop(&context);
}

uint64_t CudaDevice::allocate(size_t bytes) {
  uint64_t memory = 0;
  check(functions_.allocate(&memory, bytes == 0 ? 1 : bytes), "cuMemAlloc");
  return memory;
}
void CudaDevice::free(uint64_t memory) noexcept { functions_.free(memory); }
void CudaDevice::to_device(uint64_t device, const void* host, size_t bytes) {
  if (bytes != 0) check(functions_.to_device(device, host, bytes, stream_), "cuMemcpyHtoDAsync");
}
void CudaDevice::to_host(void* host, uint64_t device, size_t bytes) {
  if (bytes != 0) check(functions_.to_host(host, device, bytes, stream_), "cuMemcpyDtoHAsync");
}
void CudaDevice::synchronize() {
  check(functions_.stream_synchronize(stream_), "cuStreamSynchronize");
}

}  // namespace lamella::hlo
