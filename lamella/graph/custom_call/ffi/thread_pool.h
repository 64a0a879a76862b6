// The thread pool that runs tasks scheduled by handlers.
#pragma once
#include <cstdint>

#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::hlo::ffi {

// The number of threads, which equals the number of cores.
int64_t thread_pool_size();
// Runs the task on a thread of the pool, whose threads start with the first task. Runs it before
// returning if no thread can be started, or in a forked child of the process that started them.
void schedule(Task* task, void* data);

}  // namespace lamella::hlo::ffi
