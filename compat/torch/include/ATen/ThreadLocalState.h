// at::ThreadLocalState: what the thread adds to calls, to take it along to another thread.
#pragma once
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace at {
// Gradients recorded or not, and the keys that guards added and took.
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

// The callback with the state of the thread that wraps it.
template <class F>
auto wrapPropagateTLSState(F callback) {
  return [state = ThreadLocalState(), callback = std::move(callback)](auto&&... args) {
    ThreadLocalStateGuard guard(state);
    return callback(std::forward<decltype(args)>(args)...);
  };
}
}  // namespace at
