// Threads of several devices, and the places where they meet.
#include "lamella/graph/runtime/participant.h"

#include <system_error>
#include <thread>

#include "lamella/abi/operators.h"
#include "lamella/core/error.h"
#include "lamella/core/float_mode.h"

namespace lamella::hlo {

Value Rendezvous::meet(const void* place, const std::vector<int64_t>& members, size_t me,
                       std::vector<Value> operands, const Work& work) {
  std::unique_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  auto [at, is_new] = meetings_.try_emplace({place, members});
  if (is_new) {
    at->second = std::make_shared<Meeting>();
    at->second->operands.resize(members.size());
  }
  const std::shared_ptr<Meeting> meeting = at->second;
  meeting->operands[me] = std::move(operands);
  if (++meeting->came == members.size()) {
    meetings_.erase(at);  // a member that comes here again begins anew
    lock.unlock();
    std::vector<Value> results = work(meeting->operands);
    lock.lock();
    meeting->results = std::move(results);
    meeting->operands.clear();
    meeting->done = true;
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return meeting->done || error_; });
    if (!meeting->done) std::rethrow_exception(error_);
  }
  return std::move(meeting->results[me]);
}
void Rendezvous::fail(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void on_each_device(size_t count, Rendezvous& rendezvous, const std::function<void(size_t)>& f) {
  std::mutex mutex;
  std::exception_ptr first;
  auto run = [&](size_t i) {
    try {
      f(i);
    } catch (...) {
      {
        std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      rendezvous.fail(std::current_exception());
    }
  };
  const lamella_thread_state state = lamella_thread;
  const uint64_t subnormals = subnormal_mode();
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) {
    try {
      threads.emplace_back([&, i] {
        lamella_thread.included |= state.included;
        lamella_thread.excluded = state.excluded;
        lamella_thread.modes = state.modes;
        SubnormalMode mode(subnormals);
        run(i);
      });
    } catch (const std::system_error&) {
      rendezvous.fail(std::make_exception_ptr(
          Error(str("expected a thread for each of ", count, " devices, got ", i, " threads"))));
      break;
    }
  }
  if (count != 0) run(0);
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace lamella::hlo
