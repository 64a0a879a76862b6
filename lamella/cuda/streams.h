// Streams and events. A stream is a number: 0 is the device's default stream, the others come from
// a pool of each priority, or are streams of other libraries that were made known.
#pragma once
#include <cstdint>
#include <deque>
#include <mutex>

#include "lamella/cuda/driver.h"

namespace lamella::cuda {

// What is current on a thread. Plain memory: an object with a destructor would keep the library
// loaded while the thread lives.
inline constexpr int kMostDevices = 64;
struct Current {
  int device;
  int64_t streams[kMostDevices];
};
Current& current();

StreamHandle handle_of(int device, int64_t stream);
// The priorities of a device: the lowest, as the larger number, and the highest.
void priority_range(int device, int* least, int* greatest);
int64_t make_stream(int device, int priority);
// The number of a stream that another library made.
int64_t know_stream(int device, StreamHandle handle);
bool query_stream(int device, int64_t stream);
void synchronize_stream(int device, int64_t stream);
void synchronize_device(int device);
// Waits for a stream if every launch is waited for: LAMELLA_CUDA_BLOCKING=1.
void after_launch(int device, StreamHandle stream);

class Event {
 public:
  Event(int device, bool timing);
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  int device() const { return device_; }
  EventHandle handle() const { return handle_; }
  void record(int device, int64_t stream);
  void wait(int device, int64_t stream) const;
  bool query() const;
  void synchronize() const;
  double elapsed_until(const Event& later) const;

 private:
  int device_;
  bool timing_;
  bool recorded_ = false;
  EventHandle handle_ = nullptr;
};

// Events without times of one device, reused. The device's context must be current.
class EventPool {
 public:
  EventHandle take();
  void give(EventHandle event) { free_.push_back(event); }

 private:
  std::deque<EventHandle> free_;
};

}  // namespace lamella::cuda
