// The runtime's side of typed calls: definitions of the opaque types of abi.h.
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

// The completion of a handler's work. It is completed once, by any thread, and waited for once.
struct Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool completed = false;
  std::unique_ptr<HandlerError> error;
};

// The context of a handler's call. `run` is NULL in the stage `instantiate`.
struct ExecutionContext {
  RunContext* run = nullptr;
  CudaDevice* device = nullptr;  // NULL for calls on the host
  // The states set by the stages instantiate, prepare and initialize.
  State* states[3] = {nullptr, nullptr, nullptr};
};

// The table of functions that is passed to every handler.
//
// Note [What the functions of the runtime do]
//   Errors have a code and a text. Invalid requests give an error, not a crash: a stream on the
//   host, a state that is not set, a struct that is too small.
//   Device memory on the host is process memory with the requested alignment, at least 64 bytes; on
//   CUDA it comes from the driver, aligned to 256 bytes.
//   Tasks run on a separate thread pool with one thread per core (thread_pool.h); in a forked child
//   they run immediately, on the calling thread. An exception that escapes a task terminates the
//   process. Extensions of structs are not read: version 0.3 has only the one for metadata, which
//   the runtime makes and the handler reads.
const Api* api();

// The text of a handler's error: "INVALID_ARGUMENT: ...". Destroys the error.
std::string take_message(HandlerError* error);
// Waits until the future is completed, and destroys it. Returns its error; NULL on success.
std::unique_ptr<HandlerError> await(Future* future);

}  // namespace lamella::hlo::ffi
