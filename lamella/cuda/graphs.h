// Streams that are captured, and graphs of their work, which are replayed.
//
// Note [Captured streams]
//   While a stream is captured the driver records its work instead of doing it; streams that wait
//   for it join. Launches need nothing for that. What differs: memory comes from a pool of the
//   graph's own (Note [Pools of graphs] in allocator.h); what waits for the work is refused by an
//   error before the driver ends the capture; calls that the driver refuses because they may wait,
//   such as cuMemAlloc, are allowed by a RelaxedCapture; and random numbers are drawn from the seed
//   and the offset that the generator has at the replay, read from memory of the device.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "lamella/core/generator_impl.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {

extern std::atomic<int> captures_under_way;  // of all devices
inline bool is_any_captured() {
  return LAMELLA_UNLIKELY(captures_under_way.load(std::memory_order_relaxed) != 0);
}
// Whether a stream is captured, by a capture of this library.
bool is_captured(int device, int64_t stream);
// What the driver says, whichever library captures.
bool is_capturing(int device, int64_t stream);
// Throws if the stream is captured, as work that waits for it cannot be; -1: any of the device.
// what: the beginning of the error, "item: ", where no operator's name is put there.
void check_not_captured(int device, int64_t stream, const char* what = "");

// Lets this thread make calls that may wait while a stream is captured.
class RelaxedCapture {
 public:
  RelaxedCapture() : is_used_(is_any_captured()) { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { exchange(); }

 private:
  void exchange() {
    if (is_used_) Driver::functions().cuThreadExchangeStreamCaptureMode(&mode_);
  }
  bool is_used_;
  int mode_ = 2;
};

// The device's memory of a generator's seed and offset, and how far the offset has moved since the
// capture began; `state` is 0 if the current stream is not captured.
struct CapturedDraw {
  uint64_t state, offset;
};
// A generator's seed and offset.
struct PhiloxState {
  uint64_t seed, offset;
};
// Moves the offset on, and returns the state before; the generator's mutex must be held.
PhiloxState take_philox(GeneratorImpl& generator, uint64_t draws);

CapturedDraw captured_draw(int device, const Generator& generator, uint64_t draws);

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();
  // Captures the current stream of the current device. pool: 0: one of its own. mode: of
  // CUstreamCaptureMode.
  void begin(int64_t pool, int mode);
  // Returns the number of the graph's nodes.
  size_t end();
  // Ends a capture whose work failed, without an error.
  void abandon() noexcept;
  // On the current stream of the device.
  void replay();
  void reset();
  int64_t pool() const;

 private:
  friend CapturedDraw captured_draw(int, const Generator&, uint64_t);
  struct Draws {
    Generator generator;
    void *state, *block;
    uint64_t count;
  };
  void* finish(int* result);
  int device_ = 0;
  int64_t stream_ = 0, pool_ = 0;
  bool captures_ = false;
  void* executable_ = nullptr;
  std::vector<Draws> draws_;
};

}  // namespace lamella::cuda
