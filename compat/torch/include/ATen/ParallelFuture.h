// at::intraop_launch_future.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>

namespace at {
// There is no second pool for tasks: the task has run when this returns, and throws from here.
template <class F>
c10::intrusive_ptr<c10::ivalue::Future> intraop_launch_future(F&& task) {
  task();
  auto done = c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
  done->markCompleted();
  return done;
}
}  // namespace at
