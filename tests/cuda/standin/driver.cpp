// The driver's functions: devices, contexts, memory, copies, streams, events, modules, launches.
#include <dlfcn.h>

#include <cstring>

#include "tests/cuda/standin/kernel.h"
#include "tests/cuda/standin/ptx.h"
#include "tests/cuda/standin/standin.h"

using namespace standin;

namespace {

bool initialized = false;
thread_local Device* current = nullptr;

Device* device_at(int number) {
  const bool there = number >= 0 && number < static_cast<int>(devices().size());
  return there ? devices()[static_cast<size_t>(number)].get() : nullptr;
}
// The device whose memory an address lies in; NULL: none holds all the bytes.
Device* owner_of(uint64_t address, size_t bytes) {
  for (auto& device : devices()) {
    if (device->memory.holds(address, bytes)) return device.get();
  }
  return nullptr;
}
// What every call in a context finds first.
int begin(const char* function) {
  if (!initialized) return kNotInitialized;
  if (int result = note_call(function); result != 0) return result;
  if (current == nullptr) return kInvalidContext;
  return current->failed;
}
#define BEGIN \
  if (int result_ = begin(__func__); result_ != 0) return result_
// What streams that are captured refuse.
#define SAFE(check) \
  if (int result_ = (check); result_ != 0) return result_

const char* text_of(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kInvalidValue:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kNotInitialized:
      return "initialization error";
    case kNoDevice:
      return "no CUDA-capable device is detected";
    case kInvalidDevice:
      return "invalid device ordinal";
    case kInvalidContext:
      return "invalid device context";
    case 400:
      return "invalid resource handle";
    case kInvalidPtx:
      return "a PTX JIT compilation failed";
    case kNotFound:
      return "named symbol not found";
    case kNotReady:
      return "device not ready";
    case kIllegalAddress:
      return "an illegal memory access was encountered";
    case kCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case kCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case kCaptureUnmatched:
      return "capture was not initiated in this stream";
    case kCaptureUnjoined:
      return "capturing stream has unjoined work";
    case kCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case kCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case 710:
      return "device-side assert triggered";
    case 719:
      return "unspecified launch failure";
    default:
      return nullptr;
  }
}

// A symbol of the library of kernels.
void* find_in_library(const char* name) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&text_of), &info) == 0) return nullptr;
  std::string path(info.dli_fname);
  path = path.substr(0, path.rfind('/') + 1) + "libcuda_standin_kernels.so";
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return handle != nullptr ? dlsym(handle, name) : nullptr;
}
constexpr int kMostShared = 227 << 10;
int module_object;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned) {
  if (int result = note_call("cuInit"); result != 0) return result;
  initialized = true;
  return devices().empty() ? kNoDevice : kSuccess;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuGetErrorString(int result, const char** text) {
  *text = text_of(result);
  return *text != nullptr ? kSuccess : kInvalidValue;
}

// ---- Devices ----

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(devices().size());
  return note_call("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return device_at(ordinal) != nullptr ? kSuccess : kInvalidDevice;
}
int cuDeviceGetName(char* name, int bytes, int) {
  strncpy(name, "Lamella's stand-in for a GPU", static_cast<size_t>(bytes));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device_at(device) == nullptr) return kInvalidDevice;
  static const std::map<int, int> values = {{1, 1024}, {8, 49152},    {10, 32},    {16, 4},
                                            {18, 0},   {38, 1 << 20}, {39, 2048},  {75, 9},
                                            {76, 0},   {81, 233472},  {82, 65536}, {84, 0}};
  auto at = values.find(attribute);
  if (at == values.end()) return kInvalidValue;
  *value = at->second;
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = device_at(device)->memory.bytes();
  return kSuccess;
}
int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer ? 1 : 0;
  return kSuccess;
}

// ---- Contexts ----

int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (!initialized) return kNotInitialized;
  *context = device_at(device);
  return note_call(__func__);
}
int cuCtxGetCurrent(void** context) {
  *context = current;
  return kSuccess;
}
int cuCtxSetCurrent(void* context) {
  current = static_cast<Device*>(context);
  return kSuccess;
}
int cuCtxPushCurrent_v2(void* context) { return cuCtxSetCurrent(context); }
int cuCtxPopCurrent_v2(void** context) {
  *context = current;
  current = nullptr;
  return kSuccess;
}
int cuCtxSynchronize() {
  BEGIN;
  SAFE(check_wait(nullptr));
  for (Stream* stream : current->all()) stream->synchronize();
  return current->failed;
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  BEGIN;
  *least = 0;
  *greatest = -5;
  return kSuccess;
}

// ---- Memory ----

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  BEGIN;
  *total = current->memory.bytes();
  *free = *total - current->memory.used();
  return kSuccess;
}
int cuMemAlloc_v2(uint64_t* memory, size_t bytes) {
  BEGIN;
  SAFE(check_unsafe());
  if (bytes == 0) return kInvalidValue;
  *memory = current->memory.allocate(bytes);
  return *memory != 0 ? kSuccess : kOutOfMemory;
}
int cuMemFree_v2(uint64_t memory) {
  BEGIN;
  SAFE(check_unsafe());
  for (Stream* stream : current->all()) stream->synchronize();
  return current->memory.free(memory) ? kSuccess : kInvalidValue;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  BEGIN;
  SAFE(check_unsafe());
  *memory = allocate_host(bytes);
  return *memory != nullptr ? kSuccess : kOutOfMemory;
}
int cuMemFreeHost(void* memory) {
  BEGIN;
  SAFE(check_unsafe());
  return free_host(memory) ? kSuccess : kInvalidValue;
}

// ---- Copies ----

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* handle) {
  BEGIN;
  if (!current->memory.holds(to, bytes)) return kInvalidValue;
  Stream* stream = current->stream(handle);
  if (is_pinned(from) || capture_of(*stream) != nullptr) {
    stream->enqueue([=] {
      memcpy(worker_view<char>(to), from, bytes);
      return 0;
    });
    return kSuccess;
  }
  std::shared_ptr<char[]> staged(new char[bytes]);
  memcpy(staged.get(), from, bytes);
  stream->enqueue([=] {
    memcpy(worker_view<char>(to), staged.get(), bytes);
    return 0;
  });
  return kSuccess;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* handle) {
  BEGIN;
  if (!current->memory.holds(from, bytes)) return kInvalidValue;
  Stream* stream = current->stream(handle);
  stream->enqueue([=] {
    memcpy(to, worker_view<char>(from), bytes);
    return 0;
  });
  if (!is_pinned(to) && capture_of(*stream) == nullptr) stream->synchronize();
  return current->failed;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* handle) {
  BEGIN;
  if (!current->memory.holds(to, bytes) || !current->memory.holds(from, bytes)) {
    return kInvalidValue;
  }
  current->stream(handle)->enqueue([=] {
    memmove(worker_view<char>(to), worker_view<char>(from), bytes);
    return 0;
  });
  return kSuccess;
}
int cuMemcpyPeerAsync(uint64_t to, void* to_context, uint64_t from, void* from_context,
                      size_t bytes, void* handle) {
  BEGIN;
  if (owner_of(to, bytes) != to_context || owner_of(from, bytes) != from_context) {
    return kInvalidValue;
  }
  current->stream(handle)->enqueue([=] {
    memcpy(worker_view<char>(to), worker_view<char>(from), bytes);
    return 0;
  });
  return kSuccess;
}

// ---- Streams and events ----

int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  BEGIN;
  auto* made = new Stream(current);
  std::lock_guard lock(current->mutex);
  current->streams.push_back(made);
  *stream = made;
  return kSuccess;
}
int cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
int cuStreamQuery(void* handle) {
  BEGIN;
  SAFE(check_wait(current->stream(handle)));
  return current->stream(handle)->idle() ? current->failed.load() : int{kNotReady};
}
int cuStreamSynchronize(void* handle) {
  BEGIN;
  SAFE(check_wait(current->stream(handle)));
  current->stream(handle)->synchronize();
  return current->failed;
}
int cuStreamWaitEvent(void* handle, void* event, unsigned) {
  BEGIN;
  return static_cast<Event*>(event)->wait(*current->stream(handle));
}
int cuEventCreate(void** event, unsigned flags) {
  BEGIN;
  *event = new Event((flags & 2) == 0);
  return kSuccess;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
int cuEventRecord(void* event, void* handle) {
  BEGIN;
  static_cast<Event*>(event)->record(*current->stream(handle));
  return kSuccess;
}
int cuEventQuery(void* event) {
  BEGIN;
  SAFE(check_unsafe());
  if (static_cast<Event*>(event)->is_captured()) return kCapturedEvent;
  return static_cast<Event*>(event)->done() ? kSuccess : kNotReady;
}
int cuEventSynchronize(void* event) {
  BEGIN;
  if (static_cast<Event*>(event)->is_captured()) return kCapturedEvent;
  static_cast<Event*>(event)->synchronize();
  return current->failed;
}
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  BEGIN;
  auto &first = *static_cast<Event*>(start), &last = *static_cast<Event*>(end);
  if (!first.done() || !last.done()) return kNotReady;
  return first.elapsed(last, milliseconds) ? kSuccess : kInvalidValue;
}

// ---- Kernels ----

int cuModuleLoadData(void** module, const void* image) {
  BEGIN;
  if (image == nullptr) return kInvalidValue;
  SAFE(check_unsafe());
  const auto* text = static_cast<const char*>(image);
  const bool is_ptx = (*text == '/' || *text == '.') && strstr(text, ".entry") != nullptr;
  *module = is_ptx ? static_cast<void*>(load_ptx(text)) : &module_object;
  return *module != nullptr ? kSuccess : kInvalidPtx;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  BEGIN;
  static const auto find = reinterpret_cast<FindKernel>(find_in_library("standin_kernel"));
  const Kernel* kernel = nullptr;
  if (module != nullptr && module != &module_object) {
    kernel = find_ptx_kernel(static_cast<PtxModule*>(module), name);
  } else if (find != nullptr) {
    kernel = find(name, worker_offset());
  }
  *function = const_cast<Kernel*>(kernel);
  return kernel != nullptr ? kSuccess : kNotFound;
}
int cuFuncSetAttribute(void*, int attribute, int value) {
  BEGIN;
  return attribute == 8 && value <= kMostShared ? kSuccess : kInvalidValue;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* handle, void** parameters, void**) {
  BEGIN;
  const auto* kernel = static_cast<const Kernel*>(function);
  const uint64_t threads = uint64_t{block_x} * block_y * block_z;
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_x > 0x7fffffff || grid_y > 0xffff ||
      grid_z > 0xffff || threads > kernel->threads || threads == 0 || block_z > 64 ||
      shared_bytes > kMostShared) {
    return kInvalidValue;
  }
  std::shared_ptr<char[]> given(new char[kernel->parameter_bytes]);
  memcpy(given.get(), parameters[0], kernel->parameter_bytes);
  current->stream(handle)->enqueue([=] {
    const Shape shape = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
    if (kernel->body == nullptr) return kernel->run(kernel->name, given.get(), shape);
    static const void* fibres = find_in_library("standin_fibres");
    return run_ptx(*kernel, given.get(), shape, *static_cast<const FibreFunctions*>(fibres));
  });
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
