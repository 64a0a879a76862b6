// c10::make_scope_exit: calls a function at the end of the block.
#pragma once
#include <utility>

#include <c10/lamella_names.h>

namespace c10 {
template <class F>
class ScopeExit {
 public:
  explicit ScopeExit(F function) : function_(std::move(function)) {}
  ScopeExit(ScopeExit&& other) noexcept
      : function_(std::move(other.function_)), armed_(std::exchange(other.armed_, false)) {}
  ScopeExit& operator=(ScopeExit&&) = delete;
  ~ScopeExit() {
    if (armed_) function_();
  }
  void release() noexcept { armed_ = false; }

 private:
  F function_;
  bool armed_ = true;
};
template <class F>
ScopeExit<F> make_scope_exit(F function) {
  return ScopeExit<F>(std::move(function));
}
}  // namespace c10
