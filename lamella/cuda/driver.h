// The CUDA driver: its functions, its devices with their primary contexts, and its errors.
//
// Note [Errors of a device]
//   Every call of the driver is checked. A failure of work that was launched earlier is reported by
//   a later call; its message lists the kernels launched since the last wait for the device, each
//   with its line of Python if LAMELLA_CUDA_SOURCES=1 had them kept. Some
//   failures, such as an illegal address, leave a context that cannot be used any more: the device
//   is marked, and every later use of it is refused with a sentence that says what happened.
//
// Note [A child of a process that used CUDA]
//   The driver does not work in a child that was forked after its first use. The child finds a flag
//   that is set when it starts, and refuses every use.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "lamella/core/device.h"

namespace lamella::cuda {

// Types of the driver's interface. CUresult and CUdevice are int, handles are pointers.
using Address = uint64_t;  // of a device's memory
using StreamHandle = void*;
using EventHandle = void*;

struct Functions {
#define LAMELLA_CUDA_FUNCTION(name, ...) int (*name)(__VA_ARGS__) = nullptr;
#include "lamella/cuda/driver_functions.def"
};

// Values of CUresult that are looked at.
enum Result : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
};

struct DeviceFacts {
  std::string name;
  size_t total_memory = 0;
  int major = 0, minor = 0;
  int multiprocessors = 0;
  int warp_size = 0;
  int threads_of_block = 0;
  int threads_of_multiprocessor = 0;
  int registers_of_multiprocessor = 0;
  int shared_of_block = 0;
  int shared_of_multiprocessor = 0;
  int l2_bytes = 0;
  int integrated = 0;
  int multi_gpu_board = 0;
};

class Driver {
 public:
  // Loads the driver and counts its devices. Returns "", or why there is no CUDA.
  static std::string start();
  static const Functions& functions() { return functions_; }
  static int device_count() { return device_count_; }
  // Throws in a child of a process that had started the driver.
  static void check_process();
  static bool is_forked() { return forked_; }
  // Whether every launch and copy is waited for: LAMELLA_CUDA_BLOCKING=1.
  static bool is_blocking() { return blocking_; }
  static int version();
  static const DeviceFacts& facts(int device);
  // The primary context, made at the first use of the device.
  static void* context(int device);
  static bool has_context(int device);
  // Makes the device's context current on this thread and returns the former one; NULL if there was
  // none, or it was this one. Throws if the device is marked.
  static void* enter(int device);
  // Throws an error with the driver's text unless the result is 0.
  static void check(int result, const char* function);
  // Remembers the name of a kernel, which must live on, until the device is waited for; with
  // LAMELLA_CUDA_SOURCES=1 also the line of Python that launches it.
  static void note_launch(int device, const char* kernel);
  static void note_wait(int device);

 private:
  static Functions functions_;
  static int device_count_;
  static std::atomic<bool> forked_;
  static bool blocking_;
};

// Calls a function of the driver and checks its result: CUDA_CALL(cuMemFree_v2, memory).
#define CUDA_CALL(function, ...)                                                             \
  ::lamella::cuda::Driver::check(::lamella::cuda::Driver::functions().function(__VA_ARGS__), \
                                 #function)

// Makes a device's context the current one of this thread, and the former one afterwards.
class ContextGuard {
 public:
  explicit ContextGuard(int device) : former_(Driver::enter(device)) {}
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
  ~ContextGuard() {
    if (former_ != nullptr) Driver::functions().cuCtxSetCurrent(former_);
  }

 private:
  void* former_;
};

}  // namespace lamella::cuda
