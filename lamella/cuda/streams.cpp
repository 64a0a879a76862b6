// The streams of the devices by number, and events.
#include "lamella/cuda/streams.h"

#include <vector>

#include "lamella/core/error.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/index_reports.h"

namespace lamella::cuda {
namespace {

constexpr int kPriorities = 6;  // the highest may be -5
constexpr size_t kPooled = 32;  // streams of one priority

struct DeviceStreams {
  std::mutex mutex;
  std::deque<StreamHandle> handles{nullptr};  // by number
  std::vector<int64_t> pool[kPriorities];
  size_t next[kPriorities] = {};
};
DeviceStreams* const streams_of = new DeviceStreams[kMostDevices];

}  // namespace

Current& current() {
  thread_local Current one;
  return one;
}

StreamHandle handle_of(int device, int64_t stream) {
  if (stream == 0) return nullptr;
  DeviceStreams& all = streams_of[device];
  std::lock_guard lock(all.mutex);
  LAMELLA_CHECK(stream > 0 && stream < static_cast<int64_t>(all.handles.size()),
                "Stream: expected a stream of ",
                Device(DeviceType::CUDA, static_cast<DeviceIndex>(device)), ", got number ",
                stream);
  return all.handles[static_cast<size_t>(stream)];
}

void priority_range(int device, int* least, int* greatest) {
  ContextGuard guard(device);
  CUDA_CALL(cuCtxGetStreamPriorityRange, least, greatest);
}

int64_t make_stream(int device, int priority) {
  int least = 0, greatest = 0;
  priority_range(device, &least, &greatest);
  ContextGuard guard(device);
  if (greatest < 1 - kPriorities) greatest = 1 - kPriorities;
  priority = priority > 0 ? 0 : priority < greatest ? greatest : priority;
  DeviceStreams& all = streams_of[device];
  std::lock_guard lock(all.mutex);
  std::vector<int64_t>& pool = all.pool[-priority];
  if (pool.size() < kPooled) {
    StreamHandle made = nullptr;
    // 1: it does not wait for the default stream, nor that one for it.
    CUDA_CALL(cuStreamCreateWithPriority, &made, 1, priority);
    all.handles.push_back(made);
    pool.push_back(static_cast<int64_t>(all.handles.size()) - 1);
    return pool.back();
  }
  return pool[all.next[-priority]++ % kPooled];
}

int64_t know_stream(int device, StreamHandle handle) {
  Driver::check_process();
  DeviceStreams& all = streams_of[device];
  std::lock_guard lock(all.mutex);
  for (size_t i = 0; i < all.handles.size(); ++i) {
    if (all.handles[i] == handle) return static_cast<int64_t>(i);
  }
  all.handles.push_back(handle);
  return static_cast<int64_t>(all.handles.size()) - 1;
}

namespace {
// False for work that is not done yet.
bool is_done(int result, const char* function) {
  if (result == kNotReady) return false;
  Driver::check(result, function);
  return true;
}
}  // namespace

bool query_stream(int device, int64_t stream) {
  ContextGuard guard(device);
  return is_done(Driver::functions().cuStreamQuery(handle_of(device, stream)), "cuStreamQuery");
}
void synchronize_stream(int device, int64_t stream) {
  check_not_captured(device, stream, "synchronize: ");
  ContextGuard guard(device);
  CUDA_CALL(cuStreamSynchronize, handle_of(device, stream));
  check_reports(device);
}
void synchronize_device(int device) {
  check_not_captured(device, -1, "synchronize: ");
  ContextGuard guard(device);
  CUDA_CALL(cuCtxSynchronize);
  Driver::note_wait(device);
}
void after_launch(int device, StreamHandle stream) {
  if (LAMELLA_LIKELY(!Driver::is_blocking()) || is_captured(device, current().streams[device])) {
    return;
  }
  CUDA_CALL(cuStreamSynchronize, stream);
  Driver::note_wait(device);
}

// ---- Events ----

namespace {
constexpr unsigned kWithoutTimes = 2;  // CU_EVENT_DISABLE_TIMING
}

Event::Event(int device, bool timing) : device_(device), timing_(timing) {
  ContextGuard guard(device);
  CUDA_CALL(cuEventCreate, &handle_, timing ? 0 : kWithoutTimes);
}
Event::~Event() {
  if (!Driver::is_forked()) Driver::functions().cuEventDestroy_v2(handle_);
}
void Event::record(int device, int64_t stream) {
  LAMELLA_CHECK(device == device_, "Event: expected a stream of ",
                Device(DeviceType::CUDA, static_cast<DeviceIndex>(device_)), ", got one of ",
                Device(DeviceType::CUDA, static_cast<DeviceIndex>(device)));
  ContextGuard guard(device);
  CUDA_CALL(cuEventRecord, handle_, handle_of(device, stream));
  recorded_ = true;
}
void Event::wait(int device, int64_t stream) const {
  if (!recorded_) return;
  ContextGuard guard(device);
  CUDA_CALL(cuStreamWaitEvent, handle_of(device, stream), handle_, 0);
}
bool Event::query() const {
  if (!recorded_) return true;
  ContextGuard guard(device_);
  return is_done(Driver::functions().cuEventQuery(handle_), "cuEventQuery");
}
void Event::synchronize() const {
  if (!recorded_) return;
  ContextGuard guard(device_);
  CUDA_CALL(cuEventSynchronize, handle_);
}
double Event::elapsed_until(const Event& later) const {
  LAMELLA_CHECK(timing_ && later.timing_,
                "elapsed_time: expected both events to be made with enable_timing");
  LAMELLA_CHECK(recorded_ && later.recorded_, "elapsed_time: expected both events to be recorded");
  ContextGuard guard(device_);
  float milliseconds = 0;
  CUDA_CALL(cuEventElapsedTime, &milliseconds, handle_, later.handle_);
  return static_cast<double>(milliseconds);
}

EventHandle EventPool::take() {
  if (!free_.empty()) {
    EventHandle event = free_.front();
    free_.pop_front();
    return event;
  }
  EventHandle made = nullptr;
  CUDA_CALL(cuEventCreate, &made, kWithoutTimes);
  return made;
}

}  // namespace lamella::cuda
