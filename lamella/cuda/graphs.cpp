// Note [Captured streams] in graphs.h.
#include "lamella/cuda/graphs.h"

#include <cstring>

#include "lamella/core/error.h"
#include "lamella/cuda/allocator.h"

namespace lamella::cuda {

std::atomic<int> captures_under_way{0};

namespace {

// The graph that a device is captured into.
std::atomic<Graph*> graphs[kMostDevices];

Device device_at(int index) { return Device(DeviceType::CUDA, static_cast<DeviceIndex>(index)); }

}  // namespace

bool is_capturing(int device, int64_t stream) {
  if (stream == 0) return false;  // the default stream cannot be captured
  ContextGuard guard(device);
  int status = 0;
  CUDA_CALL(cuStreamIsCapturing, handle_of(device, stream), &status);
  return status != 0;
}
bool is_captured(int device, int64_t stream) {
  return is_any_captured() && graphs[device] != nullptr && is_capturing(device, stream);
}
void check_not_captured(int device, int64_t stream, const char* what) {
  if (!is_any_captured()) return;
  LAMELLA_CHECK(stream >= 0 ? !is_captured(device, stream) : graphs[device] == nullptr, what,
                "expected work that waits for nothing while a stream of ", device_at(device),
                " is captured, got a wait for it");
}

PhiloxState take_philox(GeneratorImpl& generator, uint64_t draws) {
  std::vector<uint8_t> bytes = generator.get_state();
  PhiloxState state{};
  std::memcpy(&state, bytes.data(), sizeof(state));
  const uint64_t next = state.offset + draws;
  std::memcpy(bytes.data() + 8, &next, 8);
  generator.set_state(bytes.data(), bytes.size());
  return state;
}

CapturedDraw captured_draw(int device, const Generator& generator, uint64_t draws) {
  if (!is_captured(device, current().streams[device])) return {0, 0};
  Graph& graph = *graphs[device];
  Graph::Draws* found = nullptr;
  for (Graph::Draws& one : graph.draws_) {
    if (one.generator.get() == generator.get()) found = &one;
  }
  if (found == nullptr) {
    found = &graph.draws_.emplace_back(Graph::Draws{generator, nullptr, nullptr, 0});
    found->state = allocate(16, device, current().streams[device], &found->block);
  }
  const uint64_t offset = found->count;
  found->count += draws;
  return {reinterpret_cast<uint64_t>(found->state), offset};
}

Graph::~Graph() {
  abandon();
  try {
    reset();
  } catch (...) {
    // The device failed, or the driver has ended with the process.
  }
}

void Graph::begin(int64_t pool, int mode) {
  LAMELLA_CHECK(!captures_ && executable_ == nullptr,
                "capture_begin: expected a graph without a capture, got one that has captured; "
                "reset() frees it");
  const int device = current().device;
  const int64_t stream = current().streams[device];
  LAMELLA_CHECK(stream != 0,
                "capture_begin: expected a current stream other than the default one, "
                "got the default stream of ",
                device_at(device));
  ContextGuard guard(device);
  Graph* none = nullptr;
  LAMELLA_CHECK(graphs[device].compare_exchange_strong(none, this),
                "capture_begin: expected a device without a capture under way, got ",
                device_at(device), ", which has one");
  ++captures_under_way;
  const int result = Driver::functions().cuStreamBeginCapture_v2(handle_of(device, stream), mode);
  if (result != kSuccess) {
    graphs[device] = nullptr;
    --captures_under_way;
    Driver::check(result, "cuStreamBeginCapture_v2");
  }
  device_ = device;
  stream_ = stream;
  pool_ = pool != 0 ? pool : make_pool();
  begin_pool(device, pool_);
  captures_ = true;
}

// Ends the capture and returns the driver's graph.
void* Graph::finish(int* result) {
  void* made = nullptr;
  ContextGuard guard(device_);
  *result = Driver::functions().cuStreamEndCapture(handle_of(device_, stream_), &made);
  end_pool(device_);
  captures_ = false;
  graphs[device_] = nullptr;
  --captures_under_way;
  return made;
}

size_t Graph::end() {
  LAMELLA_CHECK(captures_, "capture_end: expected a capture that was begun, got none");
  LAMELLA_CHECK(
      current().device == device_ && current().streams[device_] == stream_,
      "capture_end: expected the current stream to be that of capture_begin, got another");
  int result = 0;
  size_t nodes = 0;
  const char* function = "cuStreamEndCapture";
  void* graph = finish(&result);
  ContextGuard guard(device_);
  if (result == kSuccess) {
    const Functions& driver = Driver::functions();
    result = driver.cuGraphGetNodes(graph, nullptr, &nodes);
    if (result == kSuccess) {
      function = "cuGraphInstantiateWithFlags";
      result = driver.cuGraphInstantiateWithFlags(&executable_, graph, 0);
    }
    driver.cuGraphDestroy(graph);
  }
  if (result == kSuccess) return nodes;
  executable_ = nullptr;
  reset();
  Driver::check(result, function);
  return 0;
}

void Graph::abandon() noexcept {
  if (!captures_ || Driver::is_forked()) return;
  try {
    int result = 0;
    if (void* graph = finish(&result)) Driver::functions().cuGraphDestroy(graph);
    reset();
  } catch (...) {
    // The device failed, and what failed on it is raised already.
  }
}

void Graph::replay() {
  LAMELLA_CHECK(executable_ != nullptr, "replay: expected a graph that was captured, got ",
                captures_ ? "one whose capture is under way" : "one without a capture");
  ContextGuard guard(device_);
  const StreamHandle stream = handle_of(device_, current().streams[device_]);
  LAMELLA_CHECK(draws_.empty() || !is_captured(device_, current().streams[device_]),
                "replay: expected a graph that draws no random numbers inside a capture, got one "
                "that does");
  for (const Draws& one : draws_) {
    GeneratorImpl& generator = GeneratorImpl::of(one.generator);
    std::lock_guard lock(generator.mutex);
    const PhiloxState state = take_philox(generator, one.count);
    CUDA_CALL(cuMemcpyHtoDAsync_v2, reinterpret_cast<Address>(one.state), &state, 16, stream);
  }
  Driver::note_launch(device_, "a captured graph");
  CUDA_CALL(cuGraphLaunch, executable_, stream);
  after_launch(device_, stream);
}

void Graph::reset() {
  LAMELLA_CHECK(!captures_, "reset: expected no capture under way, got one");
  if (pool_ == 0 || Driver::is_forked()) return;
  // Work of a replay may still be under way; the driver keeps what it needs until that is done.
  if (executable_ != nullptr) {
    ContextGuard guard(device_);
    CUDA_CALL(cuGraphExecDestroy, executable_);
  }
  executable_ = nullptr;
  for (const Draws& one : draws_) deallocate(one.block);
  draws_.clear();
  release_pool(device_, pool_);
  pool_ = 0;
}

int64_t Graph::pool() const {
  LAMELLA_CHECK(pool_ != 0, "pool: expected a graph that captures or has captured, got another");
  return pool_;
}

}  // namespace lamella::cuda
