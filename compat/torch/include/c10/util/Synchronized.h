// c10::Synchronized: a value that is only accessible while its mutex is held.
#pragma once
#include <c10/lamella_names.h>
#include <torch/standard_headers.h>

namespace c10 {
template <class T>
class Synchronized {
 public:
  Synchronized() = default;
  Synchronized(const T& value) : value_(value) {}        // NOLINT: as in PyTorch
  Synchronized(T&& value) : value_(std::move(value)) {}  // NOLINT: as in PyTorch
  Synchronized(const Synchronized&) = delete;
  Synchronized& operator=(const Synchronized&) = delete;
  template <class F>
  auto withLock(F&& function) {
    std::lock_guard<std::mutex> guard(mutex_);
    return std::forward<F>(function)(value_);
  }
  template <class F>
  auto withLock(F&& function) const {
    std::lock_guard<std::mutex> guard(mutex_);
    return std::forward<F>(function)(value_);
  }

 private:
  mutable std::mutex mutex_;
  T value_;
};
}  // namespace c10
