// A driver of CUDA for machines without a GPU: libcuda's functions, executed by threads of the
// host.
//
// Note [How the stand-in differs from the host]
//   * Addresses of device memory lie in a range that the host cannot read. The same memory is
//   mapped
//     a second time, at a fixed distance, for the threads that execute the work.
//   * Work of a stream is executed by a thread, in order, later: LAMELLA_STANDIN_DELAY_US delays
//   each
//     piece, which shows missing waits. Copies from and to pinned memory are late as well; copies
//     that involve other memory of the host are done when the call returns, as the driver's are.
//   * LAMELLA_STANDIN_FAIL=function:n:result,... makes the n-th call of a function fail;
//     work:n:result makes the n-th piece of work fail, which marks its device for ever.
//   * LAMELLA_STANDIN_DEVICES and LAMELLA_STANDIN_MEMORY set the number of devices (2) and the
//   bytes
//     of each (8 GiB); LAMELLA_STANDIN_LEAKS=1 reports memory that was not freed at the end.
//   * Built with the address sanitizer, in asan/, accesses beside a block are reported; with
//     LAMELLA_CUDA_CACHE=0 each tensor has a block of its own.
//   * A captured graph is a list of pieces of work in the order of the calls; a replay is one
//   piece.
//   * Kernels come from libcuda_standin_kernels.so beside this library: the product's sources,
//     compiled for the host, those of blocks with fibres (fibres.h). Modules of PTX are translated
//     to C and checked at every access (ptx.h); LAMELLA_STANDIN_PTX is a folder for their texts.
//     Other images are not looked at.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace standin {

// Values of CUresult.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidPtx = 218,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCapturedEvent = 907,
};

// ---- memory.cpp ----

// The memory of a device: blocks at addresses that only the workers can follow.
class Memory {
 public:
  Memory(int device, size_t bytes);
  uint64_t allocate(size_t bytes);  // 0: none is left
  bool free(uint64_t address);
  // Whether [address, address + bytes) lies in one allocated block.
  bool holds(uint64_t address, size_t bytes);
  size_t bytes() const { return bytes_; }
  size_t used();
  size_t blocks();

 private:
  const size_t bytes_;
  uint64_t base_;
  std::mutex mutex_;
  size_t used_bytes_ = 0;
  std::map<uint64_t, size_t> free_, used_;
};
// What a worker adds to an address of device memory.
intptr_t worker_offset();
template <class T>
T* worker_view(uint64_t address) {
  return reinterpret_cast<T*>(static_cast<intptr_t>(address) + worker_offset());
}
void* allocate_host(size_t bytes);
bool free_host(void* memory);
bool is_pinned(const void* memory);
size_t host_blocks();

// ---- capture.cpp ----

class Stream;
using Work = std::function<int()>;  // returns a CUresult
// Streams that are captured together.
struct Capture {
  Stream* origin;
  int mode;  // of CUstreamCaptureMode
  std::thread::id thread;
  bool is_over = false, is_invalid = false;
  std::vector<Work> work;
  std::map<Stream*, bool> joined;  // others, and whether the origin waits for all their work
};
// Whether the stream is captured; then the work is the capture's.
bool capture_work(Stream& stream, const Work& work);
std::shared_ptr<Capture> capture_of(Stream& stream);
// What a call that may wait returns: an error while streams are captured, which ends the captures.
int check_unsafe();
// The same for a wait for a stream, or for the device if it is null.
int check_wait(Stream* stream);
// What waits of a stream for an event do to captures; `from` was captured when it was recorded.
int capture_wait(Stream& stream, Stream* from, const std::shared_ptr<Capture>& capture);

// ---- stream.cpp ----

struct Device;

class Stream {
 public:
  explicit Stream(Device* device) : device_(device), thread_([this] { run(); }) {
    thread_.detach();
  }
  void enqueue(Work work);
  void hold(bool held);  // while held, no work begins
  bool idle();
  void synchronize();
  Device* device() const { return device_; }

 private:
  void run();
  Device* device_;
  std::mutex mutex_;
  std::condition_variable arrived_, done_;
  std::deque<Work> queue_;
  bool busy_ = false;
  bool held_ = false;
  std::thread thread_;
};

class Event {
 public:
  explicit Event(bool timing) : timing_(timing) {}
  void record(Stream& stream);
  int wait(Stream& stream);
  bool done();
  bool is_captured();
  void synchronize();
  bool elapsed(Event& later, float* milliseconds);

 private:
  struct Mark {
    std::mutex mutex;
    std::condition_variable reached;
    bool done = false;
    std::chrono::steady_clock::time_point time;
    void wait();
  };
  std::shared_ptr<Mark> mark();
  const bool timing_;
  std::mutex mutex_;
  std::shared_ptr<Mark> mark_;  // null: never recorded
  std::shared_ptr<Capture> capture_;
  Stream* captured_ = nullptr;  // recorded last, in `capture_`
};

// A device is its own primary context.
struct Device {
  Device(int number, size_t bytes) : number(number), memory(number, bytes) {}
  const int number;
  Memory memory;
  std::atomic<int> failed{0};  // a failure of work, which every later call reports
  std::mutex mutex;
  std::unique_ptr<Stream> default_stream;
  std::vector<Stream*> streams;
  Stream* stream(void* handle);
  std::vector<Stream*> all();
};

// ---- control.cpp ----

size_t number_of(const char* variable, size_t otherwise);
std::vector<std::unique_ptr<Device>>& devices();
// Counts a call and returns the failure that is asked for, or 0.
int note_call(const char* function);
int64_t calls_of(const std::string& function);  // "": of all functions
void reset_calls();

}  // namespace standin
