// How a long computation learns that its caller wants it to stop (Ctrl-C).
//
// Note [Interrupts]
//   Loops that may run long call check_interrupt() between pieces of work. It asks the function
//   that a host language installed, and throws what that reports. The results of an interrupted
//   call are thrown away; tensors that it wrote (in place, or given as `out`) may be written in
//   part. The function may run other code of the host, so check_interrupt() must not be called
//   while holding a lock.
#pragma once
#include <cstdint>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"

namespace lamella {

// Says whether the calling thread must stop: LAMELLA_OK, or a failure whose text is this thread's
// error text.
using InterruptFunction = lamella_status (*)();

// Installs the function to ask, or none (NULL).
LAMELLA_PRIVATE_API void set_interrupt_function(InterruptFunction function);
// Throws the error that the function reports. A thread asks it at most every 50 ms; all other calls
// cost a few nanoseconds.
LAMELLA_PRIVATE_API void check_interrupt();
// The same for loops whose pieces may be short: reports that `steps` steps of some nanoseconds each
// were done since the last call. It checks after some hundred thousand steps.
LAMELLA_PRIVATE_API void count_steps(int64_t steps);
// Says that this thread begins a call, so that it asks 50 ms from now at the earliest.
LAMELLA_PRIVATE_API void begin_interruptible_call() noexcept;

}  // namespace lamella
