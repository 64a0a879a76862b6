// at::ThreadLocalState: captures the thread's dispatch state, to apply it on another thread.
#pragma once
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace at {
// The state: whether gradients are recorded, and the keys that guards included and excluded.
class ThreadLocalState {
 public:
  ThreadLocalState() = default;
  void set_grad_mode(bool enabled) { grad_ = enabled; }
  static void setThreadLocalState(const ThreadLocalState& state) {
    lamella_thread.included = state.keys_.included_.raw_repr();
    lamella_thread.excluded = state.keys_.excluded_.raw_repr();
    GradMode::set_enabled(state.grad_);
  }

 private:
  c10::impl::LocalDispatchKeySet keys_ = c10::impl::tls_local_dispatch_key_set();
  bool grad_ = GradMode::is_enabled();
};

class ThreadLocalStateGuard {
 public:
  explicit ThreadLocalStateGuard(const ThreadLocalState& state) {
    ThreadLocalState::setThreadLocalState(state);
  }
  ThreadLocalStateGuard(const ThreadLocalStateGuard&) = delete;
  ThreadLocalStateGuard& operator=(const ThreadLocalStateGuard&) = delete;
  ~ThreadLocalStateGuard() { ThreadLocalState::setThreadLocalState(before_); }

 private:
  ThreadLocalState before_;
};

// Wraps a callback, so that it runs with the state of the wrapping thread.
template <class F>
auto wrapPropagateTLSState(F callback) {
  return [state = ThreadLocalState(), callback = std::move(callback)](auto&&... args) {
    ThreadLocalStateGuard guard(state);
    return callback(std::forward<decltype(args)>(args)...);
  };
}
}  // namespace at
