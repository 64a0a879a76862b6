// Worker threads. They are made when they are needed, and kept.
#include "lamella/pjrt/workers.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "lamella/core/fork.h"

namespace lamella::pjrt {
namespace {

constexpr size_t kMostQueued = 64;
thread_local bool is_worker = false;

// Never destroyed, as threads may still run when the process ends.
struct Pool {
  std::mutex mutex;
  std::condition_variable more;     // work, or room for a thread that may run it
  std::condition_variable changed;  // less work
  std::deque<std::function<void()>> queue;
  size_t limit = std::max(4U, std::thread::hardware_concurrency());
  size_t threads = 0;
  size_t idle = 0;
  size_t running = 0;

  void run() {
    is_worker = true;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      ++idle;
      more.wait(lock, [&] { return !queue.empty() && running < limit; });
      --idle;
      {
        std::function<void()> work = std::move(queue.front());
        queue.pop_front();
        ++running;
        lock.unlock();
        work();
      }
      lock.lock();
      --running;
      changed.notify_all();
      if (!queue.empty()) more.notify_one();
    }
  }
  // With the lock.
  void call_thread() {
    if (queue.empty() || running >= limit) return;
    if (idle > 0) {
      more.notify_one();
      return;
    }
    ++threads;
    std::thread([this] { run(); }).detach();
  }
};
Pool* the_pool = new Pool;
// A child has none of the threads.
const bool kAtFork = [] {
  fork::in_child([] { the_pool = new Pool; });
  return true;
}();

}  // namespace

void run_on_worker(std::function<void()> f) {
  Pool& pool = *the_pool;
  std::unique_lock<std::mutex> lock(pool.mutex);
  if (!is_worker) pool.changed.wait(lock, [&] { return pool.queue.size() < kMostQueued; });
  pool.queue.push_back(std::move(f));
  pool.call_thread();
}
bool on_worker() { return is_worker; }
void finish_work() {
  if (is_worker) return;
  Pool& pool = *the_pool;
  std::unique_lock<std::mutex> lock(pool.mutex);
  pool.changed.wait(lock, [&] { return pool.queue.empty() && pool.running == 0; });
}

Waiting::Waiting() {
  if (!is_worker) return;
  std::lock_guard<std::mutex> lock(the_pool->mutex);
  ++the_pool->limit;
  the_pool->call_thread();
}
Waiting::~Waiting() {
  if (!is_worker) return;
  std::lock_guard<std::mutex> lock(the_pool->mutex);
  --the_pool->limit;
}

}  // namespace lamella::pjrt
