// Completion: whether work has been done, and with which error. PJRT's events refer to one.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lamella/pjrt/status.h"

namespace lamella::pjrt {

// Set once, by any thread.
class Completion {
 public:
  Completion() = default;
  explicit Completion(bool ready) : ready_(ready) {}
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  // Once ready.
  const Status& status() const { return status_; }
  void set(Status status = {});
  // The same without an error, while no other thread knows the completion.
  void set_alone() { ready_.store(true, std::memory_order_release); }
  const Status& wait();
  // Calls f(status) when ready: now, or later on the thread that sets it.
  void then(std::function<void(const Status&)> f);

 private:
  std::atomic<bool> ready_ = false;
  Status status_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void(const Status&)>> waiting_;
};
using CompletionPointer = std::shared_ptr<Completion>;

// An event of PJRT's; null stands for work that is done without an error. Destroyed by the caller.
Event* make_event(CompletionPointer of);
Event* ready_event();

}  // namespace lamella::pjrt
