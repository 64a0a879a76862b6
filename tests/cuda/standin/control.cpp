// The environment variables of the stand-in, the counts of calls, and what is asked for by tests.
#include <cstdio>
#include <cstdlib>

#include "tests/cuda/standin/standin.h"

extern "C" int cuCtxGetCurrent(void** context);

namespace standin {
namespace {

struct Failure {
  std::string function;
  int64_t call;
  int result;
};
std::vector<Failure> read_failures() {
  std::vector<Failure> all;
  const char* text = std::getenv("LAMELLA_STANDIN_FAIL");
  for (std::string rest = text != nullptr ? text : ""; !rest.empty();) {
    const size_t end = rest.find(',');
    std::string one = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
    char name[64];
    long call = 0;
    int result = 0;
    if (sscanf(one.c_str(), "%63[^:]:%ld:%d", name, &call, &result) != 3) abort();
    all.push_back({name, call, result});
  }
  return all;
}

struct Calls {
  std::mutex mutex;
  std::map<std::string, int64_t> of;
  std::vector<Failure> failures = read_failures();
};
Calls& calls() {
  static auto* one = new Calls();
  return *one;
}

void report_leaks() {
  for (auto& device : devices()) {
    if (size_t blocks = device->memory.blocks(); blocks != 0) {
      fprintf(stderr, "standin: %zu blocks of cuda:%d were not freed, %zu bytes\n", blocks,
              device->number, device->memory.used());
    }
  }
  if (size_t blocks = host_blocks(); blocks != 0) {
    fprintf(stderr, "standin: %zu blocks of pinned memory were not freed\n", blocks);
  }
}

}  // namespace

size_t number_of(const char* variable, size_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? strtoull(text, nullptr, 10) : otherwise;
}

std::vector<std::unique_ptr<Device>>& devices() {
  static auto* all = [] {
    auto* made = new std::vector<std::unique_ptr<Device>>();
    const auto count = static_cast<int>(number_of("LAMELLA_STANDIN_DEVICES", 2));
    const size_t bytes = number_of("LAMELLA_STANDIN_MEMORY", size_t{8} << 30);
    for (int i = 0; i < count; ++i) made->push_back(std::make_unique<Device>(i, bytes));
    if (number_of("LAMELLA_STANDIN_LEAKS", 0) != 0) std::atexit(&report_leaks);
    return made;
  }();
  return *all;
}

int note_call(const char* function) {
  std::lock_guard lock(calls().mutex);
  const int64_t call = ++calls().of[function];
  for (const Failure& failure : calls().failures) {
    if (failure.function == function && failure.call == call) return failure.result;
  }
  return kSuccess;
}
int64_t calls_of(const std::string& function) {
  std::lock_guard lock(calls().mutex);
  if (!function.empty()) return calls().of[function];
  int64_t sum = 0;
  for (const auto& [name, count] : calls().of) sum += count;
  return sum;
}
void reset_calls() {
  std::lock_guard lock(calls().mutex);
  calls().of.clear();
}

}  // namespace standin

// ---- For tests, by ctypes ----

#define STANDIN_API extern "C" __attribute__((visibility("default")))

STANDIN_API int64_t standin_calls(const char* function) { return standin::calls_of(function); }
STANDIN_API void standin_reset_calls() { standin::reset_calls(); }
STANDIN_API int64_t standin_blocks(int device) {
  return static_cast<int64_t>(standin::devices().at(static_cast<size_t>(device))->memory.blocks());
}
STANDIN_API int64_t standin_host_blocks() { return static_cast<int64_t>(standin::host_blocks()); }
// Lets the device's default stream begin no work until it is let go.
STANDIN_API void standin_hold(int device, int held) {
  standin::devices().at(static_cast<size_t>(device))->stream(nullptr)->hold(held != 0);
}
STANDIN_API intptr_t standin_worker_offset() { return standin::worker_offset(); }

// ---- For the stand-ins of CUDA's libraries ----

// Counts a call of `function`, and lets a stream of the current device do its work, unless the call
// is to fail.
STANDIN_API int standin_enqueue(const char* function, void* stream, std::function<int()> work) {
  void* device = nullptr;
  if (cuCtxGetCurrent(&device) != standin::kSuccess || device == nullptr) abort();
  if (int result = standin::note_call(function); result != standin::kSuccess) return result;
  static_cast<standin::Device*>(device)->stream(stream)->enqueue(std::move(work));
  return standin::kSuccess;
}
// Whether the bytes lie in memory of the current device.
STANDIN_API bool standin_holds(const void* data, size_t bytes) {
  void* device = nullptr;
  if (cuCtxGetCurrent(&device) != standin::kSuccess || device == nullptr) return false;
  return static_cast<standin::Device*>(device)->memory.holds(reinterpret_cast<uint64_t>(data),
                                                             bytes);
}
