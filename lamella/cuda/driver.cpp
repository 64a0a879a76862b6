// Loads the driver's functions, keeps the devices' contexts, and words the driver's errors.
#include "lamella/cuda/driver.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "lamella/core/cuda_driver.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/cuda/index_reports.h"
#include "lamella/cuda/python_source.h"

namespace lamella::cuda {

Functions Driver::functions_;
int Driver::device_count_ = 0;
std::atomic<bool> Driver::forked_{false};
bool Driver::blocking_ = false;

namespace {

constexpr uint64_t kNamesKept = 16;
bool keeps_sources = false;  // LAMELLA_CUDA_SOURCES=1

// One device. Never freed: tensors in static objects may be freed at any time.
struct DeviceState {
  std::atomic<void*> context{nullptr};
  std::mutex mutex;
  DeviceFacts facts;
  std::atomic<bool> has_facts{false};
  // The latest kernels, by their number; those from `waited_for` on may still run.
  std::atomic<uint64_t> launches{0}, waited_for{0};
  std::atomic<const char*> names[kNamesKept] = {};
  std::mutex sourcing;
  std::string sources[kNamesKept];  // guarded by `sourcing`
  std::atomic<const std::string*> broken{nullptr};
};
auto& states = *new std::vector<std::unique_ptr<DeviceState>>();
DeviceState& state_of(int device) { return *states[static_cast<size_t>(device)]; }

thread_local int entered = -1;  // the device whose context this thread entered last

bool is_sticky(int result) {
  // ECC, hardware, illegal address to launch failure (but 704 and 708 to 713), illegal
  // instruction...
  return result == 214 || result == 700 || result == 702 || result == 709 || result == 710 ||
         (result >= 714 && result <= 719);
}

std::string text_of(int result) {
  const char* text = nullptr;
  const auto& f = Driver::functions();
  if (f.cuGetErrorString == nullptr || f.cuGetErrorString(result, &text) != 0 || text == nullptr) {
    text = "unknown error";
  }
  return str(text, " (", result, ")");
}

// "cuMemAlloc" for "cuMemAlloc_v2"
std::string_view plain_name(std::string_view function) {
  if (size_t at = function.rfind("_v2"); at != std::string_view::npos)
    return function.substr(0, at);
  return function;
}

std::string launches_of(DeviceState& state) {
  const uint64_t end = state.launches, all = end - state.waited_for;
  if (all == 0) return "";
  std::string text = "; kernels launched since the last wait: ";
  if (all > kNamesKept) text += str(all - kNamesKept, " others, ");
  const uint64_t first = all > kNamesKept ? end - kNamesKept : end - all;
  std::lock_guard lock(state.sourcing);
  for (uint64_t i = first; i < end; ++i) {
    const std::string& source = state.sources[i % kNamesKept];
    text += str(i == first ? "" : ", ", state.names[i % kNamesKept].load());
    if (!source.empty()) text += str(" (", source, ")");
  }
  return text;
}

[[noreturn]] void fail(int result, const char* function) {
  std::string message =
      str("the CUDA driver's ", plain_name(function), " failed: ", text_of(result));
  if (result == kOutOfMemory) throw OutOfMemoryError(std::move(message));
  if (is_sticky(result) && entered >= 0) {
    DeviceState& state = state_of(entered);
    message =
        str("work on ", Device(DeviceType::CUDA, static_cast<DeviceIndex>(entered)), " failed, as ",
            plain_name(function), " reports: ", text_of(result), launches_of(state));
    const std::string* none = nullptr;
    auto* kept = new std::string(message);
    if (!state.broken.compare_exchange_strong(none, kept)) delete kept;
    throw Error(
        str(message, ". The device cannot be used any more in this process",
            Driver::is_blocking() ? "" : "; LAMELLA_CUDA_BLOCKING=1 names the operator exactly",
            keeps_sources ? "" : "; LAMELLA_CUDA_SOURCES=1 keeps the lines that launch"));
  }
  if (result == kInvalidHandle) {
    message += "; expected a stream and an event that still exist, got one that was freed";
  }
  throw Error(std::move(message));
}

}  // namespace

std::string Driver::start() {
  CudaDriverFile file = CudaDriverFile::open();
  if (file.handle == nullptr) return file.problem;
  Functions found;
#define LAMELLA_CUDA_FUNCTION(symbol, ...)                                     \
  found.symbol = reinterpret_cast<decltype(found.symbol)>(file.find(#symbol)); \
  if (found.symbol == nullptr) return str("the driver ", file.name, " lacks " #symbol);
#include "lamella/cuda/driver_functions.def"
  functions_ = found;
  if (int result = found.cuInit(0); result != 0) return str("cuInit failed: ", text_of(result));
  int count = 0;
  if (int result = found.cuDeviceGetCount(&count); result != 0) {
    return str("cuDeviceGetCount failed: ", text_of(result));
  }
  if (count == 0) return "the driver has no devices";
  for (int i = 0; i < count; ++i) states.push_back(std::make_unique<DeviceState>());
  const char* blocking = std::getenv("LAMELLA_CUDA_BLOCKING");
  blocking_ = blocking != nullptr && std::strcmp(blocking, "1") == 0;
  const char* sources = std::getenv("LAMELLA_CUDA_SOURCES");
  keeps_sources = sources != nullptr && std::strcmp(sources, "1") == 0;
  fork::in_child([] { forked_ = true; });
  device_count_ = count;
  return "";
}

void Driver::check_process() {
  LAMELLA_CHECK(
      !forked_.load(std::memory_order_relaxed),
      "expected a process that uses CUDA for the first time, got a child that was "
      "forked after its parent had used it; start such processes with the method 'spawn'");
}

int Driver::version() {
  int version = 0;
  CUDA_CALL(cuDriverGetVersion, &version);
  return version;
}

const DeviceFacts& Driver::facts(int device) {
  check_process();
  DeviceState& state = state_of(device);
  if (LAMELLA_LIKELY(state.has_facts.load(std::memory_order_acquire))) return state.facts;
  std::lock_guard lock(state.mutex);
  if (state.has_facts.load(std::memory_order_relaxed)) return state.facts;
  DeviceFacts& f = state.facts;
  int handle = 0;
  CUDA_CALL(cuDeviceGet, &handle, device);
  char name[256] = {};
  CUDA_CALL(cuDeviceGetName, name, static_cast<int>(sizeof(name)) - 1, handle);
  f.name = name;
  CUDA_CALL(cuDeviceTotalMem_v2, &f.total_memory, handle);
  struct {
    int* to;
    int attribute;  // of CUdevice_attribute
  } const rows[] = {{&f.threads_of_block, 1},
                    {&f.shared_of_block, 8},
                    {&f.warp_size, 10},
                    {&f.multiprocessors, 16},
                    {&f.integrated, 18},
                    {&f.l2_bytes, 38},
                    {&f.threads_of_multiprocessor, 39},
                    {&f.major, 75},
                    {&f.minor, 76},
                    {&f.shared_of_multiprocessor, 81},
                    {&f.registers_of_multiprocessor, 82},
                    {&f.multi_gpu_board, 84}};
  for (const auto& row : rows) CUDA_CALL(cuDeviceGetAttribute, row.to, row.attribute, handle);
  state.has_facts.store(true, std::memory_order_release);
  return f;
}

void* Driver::context(int device) {
  DeviceState& state = state_of(device);
  if (void* made = state.context.load(std::memory_order_acquire)) return made;
  check_process();
  std::lock_guard lock(state.mutex);
  void* made = state.context.load(std::memory_order_relaxed);
  if (made == nullptr) {
    int handle = 0;
    CUDA_CALL(cuDeviceGet, &handle, device);
    CUDA_CALL(cuDevicePrimaryCtxRetain, &made, handle);
    state.context.store(made, std::memory_order_release);
  }
  return made;
}
bool Driver::has_context(int device) { return state_of(device).context.load() != nullptr; }

void* Driver::enter(int device) {
  check_process();
  DeviceState& state = state_of(device);
  void* wanted = state.context.load(std::memory_order_acquire);
  if (LAMELLA_UNLIKELY(wanted == nullptr)) wanted = context(device);
  entered = device;
  if (const std::string* why = state.broken.load(std::memory_order_relaxed)) {
    throw Error(str("expected a CUDA device that works, got ",
                    Device(DeviceType::CUDA, static_cast<DeviceIndex>(device)),
                    ", on which earlier work failed: ", *why));
  }
  void* now = nullptr;
  CUDA_CALL(cuCtxGetCurrent, &now);
  if (LAMELLA_LIKELY(now == wanted)) return nullptr;
  CUDA_CALL(cuCtxSetCurrent, wanted);
  return now;
}

void Driver::check(int result, const char* function) {
  if (LAMELLA_UNLIKELY(result != kSuccess)) fail(result, function);
}

void Driver::note_launch(int device, const char* kernel) {
  DeviceState& state = state_of(device);
  const uint64_t at = state.launches.fetch_add(1, std::memory_order_relaxed) % kNamesKept;
  state.names[at].store(kernel, std::memory_order_relaxed);
  if (LAMELLA_LIKELY(!keeps_sources)) return;
  std::string source = python_source();
  std::lock_guard lock(state.sourcing);
  state.sources[at] = std::move(source);
}
void Driver::note_wait(int device) {
  DeviceState& state = state_of(device);
  state.waited_for = state.launches.load();
  check_reports(device);
}

}  // namespace lamella::cuda
