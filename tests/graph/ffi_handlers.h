// The counters and values by which tests observe the handlers of ffi_handlers.cpp.
#pragma once
#include <string>

#include "xla/ffi/api/ffi.h"

// User data.
struct Counter {
  static xla::ffi::TypeId id;
  int64_t value = 0;
};
// What states of "test.stages" did: +1 made the first, -1 deleted it, x executed.
extern std::string trace;
// May go into command buffers.
XLA_FFI_Error* replayable_handler(XLA_FFI_CallFrame* frame);
