// at::intraop_launch_future.
#pragma once
#include <ATen/Parallel.h>
#include <c10/util/intrusive_ptr.h>

namespace c10::ivalue {
// Work that was done before the object was made.
struct Future : lamella::intrusive_ptr_target {
  void wait() const {}
  bool completed() const { return true; }
};
}  // namespace c10::ivalue
namespace at {
// There is no second pool for tasks: the task has run when this returns, and throws from here.
template <class F>
c10::intrusive_ptr<c10::ivalue::Future> intraop_launch_future(F&& task) {
  task();
  return c10::make_intrusive<c10::ivalue::Future>();
}
}  // namespace at
