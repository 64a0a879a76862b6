// The thread pool of handlers: a queue of tasks and its threads.
#include "lamella/graph/custom_call/ffi/thread_pool.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "lamella/core/thread_count.h"

namespace lamella::hlo::ffi {
namespace {

struct Pool {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<std::pair<Task*, void*>> tasks;
  int64_t threads = 0;
  int64_t idle = 0;
  pid_t process = 0;

  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      ++idle;
      more.wait(lock, [&] { return !tasks.empty(); });
      --idle;
      auto [task, data] = tasks.front();
      tasks.pop_front();
      lock.unlock();
      task(data);
      lock.lock();
    }
  }
};
// Never destroyed, because its threads wait in it until the process ends.
Pool& pool() {
  static Pool& one = *new Pool;
  return one;
}
const pid_t process_at_load = getpid();

}  // namespace

int64_t thread_pool_size() { return default_num_threads(); }

void schedule(Task* task, void* data) {
  if (getpid() != process_at_load) return task(data);
  Pool& p = pool();
  {
    std::unique_lock<std::mutex> lock(p.mutex);
    if (p.idle <= static_cast<int64_t>(p.tasks.size()) && p.threads < thread_pool_size()) {
      try {
        std::thread([&p] { p.work(); }).detach();
        ++p.threads;
      } catch (const std::system_error&) {
        if (p.threads == 0) {
          lock.unlock();
          return task(data);
        }
      }
    }
    p.tasks.emplace_back(task, data);
  }
  p.more.notify_one();
}

}  // namespace lamella::hlo::ffi
