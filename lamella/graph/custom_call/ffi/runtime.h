// The runtime's side of typed calls: what stands behind the opaque types of abi.h.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/cuda_driver.h"
#include "lamella/graph/custom_call/ffi/abi.h"
#include "lamella/graph/custom_call/ffi/types.h"

namespace lamella::hlo::ffi {

inline std::string_view text_of(const ByteSpan& span) { return {span.ptr, span.len}; }

struct HandlerError {
  ErrorCode code;
  std::string message;
};

// Completed once, by any thread; waited for once.
struct Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool completed = false;
  std::unique_ptr<HandlerError> error;
};

// What a handler's context leads to. Of `run` there is none when a call is instantiated.
struct ExecutionContext {
  RunContext* run = nullptr;
  CudaDevice* device = nullptr;  // of calls on CUDA
  // By the stage that sets it: instantiate, prepare, initialize.
  State* states[3] = {nullptr, nullptr, nullptr};
};

// The table of functions that every handler is given.
//
// Note [What the functions of the runtime do]
//   Errors are texts with a code; whatever the table is asked that cannot be answered is an error
//   rather than a crash: a stream on the host, a state that is not set, a struct that is too small.
//   Device memory on the host is memory of the process, aligned as asked, at least to 64 bytes; on
//   CUDA it is the driver's, aligned to 256.
//   Tasks run on threads of a pool of its own, as many as there are cores (thread_pool.h); in a
//   child that was forked they run at once. An exception that leaves a task ends the process, as
//   one that leaves any thread does. Extensions of structs are not read: version 0.3 has one, for
//   metadata, which the runtime makes and the handler reads.
const Api* api();

// The error of a handler as text: "INVALID_ARGUMENT: ...". Destroys it.
std::string take_message(HandlerError* error);
// Waits until the future is completed, and destroys it. NULL where it went well.
std::unique_ptr<HandlerError> await(Future* future);

}  // namespace lamella::hlo::ffi
