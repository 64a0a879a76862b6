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

namespace lamella::cuda {

Functions Driver::functions_;
int Driver::device_count_ = 0;
std::atomic<bool> Driver::forked_{false};
bool Driver::blocking_ = false;

namespace {

constexpr int kNamesKept = 16;

// One device. Never freed: tensors in static objects may be freed at any time.
struct DeviceState {
  std::atomic<void*> context{nullptr};
  std::mutex mutex;
  DeviceFacts facts;
  bool has_facts = false;
  // Kernels since the last wait; guarded by `launched`.
  std::mutex launched;
  std::vector<const char*> names;
  size_t unnamed = 0;
  std::atomic<const std::string*> broken{nullptr};
};
std::vector<std::unique_ptr<DeviceState>>& states() {
  static auto* all = new std::vector<std::unique_ptr<DeviceState>>();
  return *all;
}
DeviceState& state_of(int device) { return *states()[static_cast<size_t>(device)]; }

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
  std::lock_guard lock(state.launched);
  if (state.names.empty()) return "";
  std::string text = "; kernels launched since the last wait: ";
  if (state.unnamed != 0) text += str(state.unnamed, " others, ");
  for (size_t i = 0; i < state.names.size(); ++i) text += str(i == 0 ? "" : ", ", state.names[i]);
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
            Driver::is_blocking() ? "" : "; LAMELLA_CUDA_BLOCKING=1 names the operator exactly"));
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
  for (int i = 0; i < count; ++i) states().push_back(std::make_unique<DeviceState>());
  const char* blocking = std::getenv("LAMELLA_CUDA_BLOCKING");
  blocking_ = blocking != nullptr && std::strcmp(blocking, "1") == 0;
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
  std::lock_guard lock(state.mutex);
  if (state.has_facts) return state.facts;
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
  state.has_facts = true;
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

void Driver::enter(int device) {
  check_process();
  void* wanted = context(device);
  void* now = nullptr;
  entered = device;
  if (const std::string* why = state_of(device).broken.load(std::memory_order_relaxed)) {
    throw Error(str("expected a CUDA device that works, got ",
                    Device(DeviceType::CUDA, static_cast<DeviceIndex>(device)),
                    ", on which earlier work failed: ", *why));
  }
  CUDA_CALL(cuCtxGetCurrent, &now);
  if (now != wanted) CUDA_CALL(cuCtxSetCurrent, wanted);
}

void Driver::check(int result, const char* function) {
  if (LAMELLA_UNLIKELY(result != kSuccess)) fail(result, function);
}

void Driver::note_launch(int device, const char* kernel) {
  DeviceState& state = state_of(device);
  std::lock_guard lock(state.launched);
  if (state.names.size() == kNamesKept) {
    state.names.erase(state.names.begin());
    ++state.unnamed;
  }
  state.names.push_back(kernel);
}
void Driver::note_wait(int device) {
  {
    DeviceState& state = state_of(device);
    std::lock_guard lock(state.launched);
    state.names.clear();
    state.unnamed = 0;
  }
  check_reports(device);
}

}  // namespace lamella::cuda
