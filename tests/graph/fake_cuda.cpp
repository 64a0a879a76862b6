// The driver functions that Lamella calls, over host memory.
#include "tests/graph/fake_cuda.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

constexpr uint64_t kTag = uint64_t{0x00f0} << 48;  // no address of the host
int devices = 1;
int synchronize_result = 0;
std::atomic<int64_t> blocks = 0;
std::mutex mutex;
thread_local int contexts = 0;
int context_object;

struct Stream {
  std::vector<std::function<void()>> work;
};

char* at(uint64_t device) { return reinterpret_cast<char*>(device & ~kTag); }
// CUDA_ERROR_INVALID_CONTEXT, without one.
int in_context(int result = 0) { return contexts > 0 ? result : 201; }

}  // namespace

void fake_enqueue(void* stream, std::function<void()> work) {
  std::lock_guard<std::mutex> lock(mutex);
  static_cast<Stream*>(stream)->work.push_back(std::move(work));
}
void* fake_memory(const void* device) { return at(reinterpret_cast<uint64_t>(device)); }
void fake_set_devices(int count) { devices = count; }
void fake_fail_synchronize(int result) { synchronize_result = result; }
int64_t fake_blocks_in_use() { return blocks; }

extern "C" {
int cuInit(unsigned) { return devices > 0 ? 0 : 100; }
int cuDeviceGetCount(int* count) {
  *count = devices;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &context_object;
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  ++contexts;
  return context == &context_object ? 0 : 201;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = &context_object;
  --contexts;
  return 0;
}
int cuMemAlloc_v2(uint64_t* memory, size_t bytes) {
  if (bytes == 0) return 1;
  if (bytes > size_t{1} << 40) return 2;
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(block, 0xff, bytes);
  *memory = reinterpret_cast<uint64_t>(block) | kTag;
  ++blocks;
  return in_context();
}
int cuMemFree_v2(uint64_t memory) {
  std::free(at(memory));
  --blocks;
  return in_context();
}
int cuMemcpyHtoDAsync_v2(uint64_t device, const void* host, size_t bytes, void* stream) {
  fake_enqueue(stream, [=] { std::memcpy(at(device), host, bytes); });
  return in_context();
}
int cuMemcpyDtoHAsync_v2(void* host, uint64_t device, size_t bytes, void* stream) {
  fake_enqueue(stream, [=] { std::memcpy(host, at(device), bytes); });
  return in_context();
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return in_context();
}
int cuStreamSynchronize(void* stream) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto& work : static_cast<Stream*>(stream)->work) work();
  static_cast<Stream*>(stream)->work.clear();
  int result = synchronize_result;
  synchronize_result = 0;
  return in_context(result);
}
int cuGetErrorString(int result, const char** text) {
  *text = result == 100 ? "no CUDA-capable device is detected" : "an illegal memory access";
  return 0;
}
}
