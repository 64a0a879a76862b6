// Captures of streams, and graphs. What the driver documents as not allowed while a stream is
// captured returns the driver's error, and ends the captures that it would spoil.
#include "tests/cuda/standin/standin.h"

extern "C" int cuCtxGetCurrent(void** context);

namespace standin {
namespace {

enum Mode : int { kGlobal, kThreadLocal, kRelaxed };
std::mutex mutex;  // of all that follows
std::map<Stream*, std::shared_ptr<Capture>>& captures() {
  static auto* all = new std::map<Stream*, std::shared_ptr<Capture>>();
  return *all;
}
std::atomic<size_t> captured_streams{0};
thread_local int mode_of_thread = kGlobal;

struct Graph {
  std::vector<Work> work;
};

int start(const char* function) {
  void* device = nullptr;
  cuCtxGetCurrent(&device);
  if (int result = note_call(function); result != kSuccess) return result;
  return device == nullptr ? int{kInvalidContext} : static_cast<Device*>(device)->failed.load();
}
Stream* stream_of(void* handle) {
  void* device = nullptr;
  cuCtxGetCurrent(&device);
  return static_cast<Device*>(device)->stream(handle);
}

}  // namespace

std::shared_ptr<Capture> capture_of(Stream& stream) {
  if (captured_streams == 0) return nullptr;
  std::lock_guard lock(mutex);
  auto found = captures().find(&stream);
  return found == captures().end() ? nullptr : found->second;
}
bool capture_work(Stream& stream, const Work& work) {
  if (captured_streams == 0) return false;
  auto capture = capture_of(stream);
  if (capture == nullptr) return false;
  std::lock_guard lock(mutex);
  capture->work.push_back(work);
  if (&stream != capture->origin) capture->joined[&stream] = false;
  return true;
}
int check_unsafe() {
  if (captured_streams == 0) return kSuccess;
  std::lock_guard lock(mutex);
  int result = kSuccess;
  for (auto& [stream, capture] : captures()) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool refused = mode_of_thread == kRelaxed || capture->mode == kRelaxed ? false
                         : capture->mode == kGlobal && mode_of_thread == kGlobal ? true
                                                                                 : own;
    if (!refused) continue;
    capture->is_invalid = true;
    result = kCaptureUnsupported;
  }
  return result;
}
int check_wait(Stream* waited) {
  if (captured_streams == 0) return kSuccess;
  std::lock_guard lock(mutex);
  int result = kSuccess;
  for (auto& [stream, capture] : captures()) {
    if (waited != nullptr && stream != waited) continue;
    capture->is_invalid = true;
    result = kCaptureUnsupported;
  }
  return result;
}
int capture_wait(Stream& stream, Stream* from, const std::shared_ptr<Capture>& capture) {
  auto own = capture_of(stream);
  std::lock_guard lock(mutex);
  if (capture == nullptr) {  // the stream is captured, but not what it waits for
    own->is_invalid = true;
    return kCaptureIsolation;
  }
  if (capture->is_over || (own != nullptr && own != capture)) return kCapturedEvent;
  if (own == nullptr) {
    captures()[&stream] = capture;
    ++captured_streams;
    capture->joined[&stream] = true;
  }
  if (auto found = capture->joined.find(from); found != capture->joined.end()) {
    found->second = true;
    // What waits is itself to be waited for.
    if (&stream != capture->origin) capture->joined[&stream] = false;
  }
  return kSuccess;
}

}  // namespace standin

using namespace standin;

#pragma GCC visibility push(default)
extern "C" {

int cuStreamBeginCapture_v2(void* handle, int mode) {
  if (int result = start(__func__); result != kSuccess) return result;
  if (handle == nullptr) return kCaptureUnsupported;  // the legacy stream
  auto* stream = static_cast<Stream*>(handle);
  std::lock_guard lock(mutex);
  auto& capture = captures()[stream];
  if (capture != nullptr) return kInvalidValue;
  capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  ++captured_streams;
  return kSuccess;
}
int cuStreamEndCapture(void* handle, void** graph) {
  *graph = nullptr;
  if (int result = start(__func__); result != kSuccess) return result;
  std::lock_guard lock(mutex);
  auto found = captures().find(static_cast<Stream*>(handle));
  if (found == captures().end()) return kInvalidValue;
  const std::shared_ptr<Capture> capture = found->second;
  if (capture->origin != handle) return kCaptureUnmatched;
  capture->is_over = true;
  captures().erase(found);
  bool unjoined = false;
  for (auto& [stream, waited] : capture->joined) {
    captures().erase(stream);
    unjoined = unjoined || !waited;
  }
  captured_streams = captures().size();
  if (capture->is_invalid) return kCaptureInvalidated;
  if (unjoined) return kCaptureUnjoined;
  *graph = new Graph{capture->work};
  return kSuccess;
}
int cuStreamIsCapturing(void* handle, int* status) {
  if (int result = start(__func__); result != kSuccess) return result;
  auto capture = capture_of(*stream_of(handle));
  *status = capture == nullptr ? 0 : capture->is_invalid ? 2 : 1;
  return kSuccess;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (int result = note_call(__func__); result != kSuccess) return result;
  std::swap(*mode, mode_of_thread);
  return kSuccess;
}
int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  if (int result = note_call(__func__); result != kSuccess) return result;
  if (nodes != nullptr) return kInvalidValue;
  *count = static_cast<Graph*>(graph)->work.size();
  return kSuccess;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  if (int result = start(__func__); result != kSuccess) return result;
  if (flags != 0) return kInvalidValue;
  *executable = new std::shared_ptr<Graph>(new Graph(*static_cast<Graph*>(graph)));
  return kSuccess;
}
int cuGraphLaunch(void* executable, void* handle) {
  if (int result = start(__func__); result != kSuccess) return result;
  stream_of(handle)->enqueue([graph = *static_cast<std::shared_ptr<Graph>*>(executable)] {
    for (const Work& work : graph->work) {
      if (int result = work(); result != kSuccess) return result;
    }
    return int{kSuccess};
  });
  return kSuccess;
}
int cuGraphExecDestroy(void* executable) {
  delete static_cast<std::shared_ptr<Graph>*>(executable);
  return note_call(__func__);
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return note_call(__func__);
}

}  // extern "C"
#pragma GCC visibility pop
