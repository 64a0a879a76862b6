// at::intraop_launch_future: a task that has run when the call returns, as those of intraop_launch.
#pragma once
#include <ATen/Parallel.h>
#include <c10/util/intrusive_ptr.h>

namespace c10::ivalue {
struct Future : lamella::intrusive_ptr_target {
  void wait() const {}
  bool completed() const { return true; }
};
}  // namespace c10::ivalue
namespace at {
template <class F>
c10::intrusive_ptr<c10::ivalue::Future> intraop_launch_future(F&& task) {
  intraop_launch(task);
  return lamella::make_intrusive<c10::ivalue::Future>();
}
}  // namespace at
