// The threads that run what handlers schedule.
#pragma once
#include <cstdint>

#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::hlo::ffi {

// The number of threads, which is that of the cores.
int64_t thread_pool_size();
// Runs the task on one of the threads; they are started when the first task comes. In a child of
// the process that started them, and where no thread can be started, runs it before returning.
void schedule(Task* task, void* data);

}  // namespace lamella::hlo::ffi
