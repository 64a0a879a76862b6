// Grace periods: see Note [Deregistering while others call] in reclaim.h.
#include "lamella/dispatch/reclaim.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella::reclaim {
namespace {

struct Retired {
  void (*destroy)(void*);
  void* object;
};

struct State;
State& state();
struct State {
  std::mutex mutex;
  std::vector<lamella_thread_state*> threads;
  std::vector<Retired> retired;
  bool membarrier = false;
};

// Never destroyed: threads may end, and libraries be unloaded, after static destruction.
State& state() {
  static State* s = [] {
    State* made = new State;
    made->membarrier =
        syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    fork::hold(fork::Level::kReclaim, &made->mutex);
    // A forked child has only this thread, so no other thread can be inside a call.
    fork::in_child([] {
      auto& threads = state().threads;
      threads.erase(std::remove_if(threads.begin(), threads.end(),
                                   [](auto* thread) { return thread != &lamella_thread; }),
                    threads.end());
    });
    return made;
  }();
  return *s;
}

// Removes the thread from the list when it ends. A key of the threads library instead of a
// thread_local object with a destructor: registering one of those takes the loader's lock, which a
// library that is being unloaded holds while it waits for this very thread.
pthread_key_t thread_end_key() {
  static pthread_key_t key = [] {
    pthread_key_t made;
    int error = pthread_key_create(&made, [](void* ended) {
      std::lock_guard<std::mutex> lock(state().mutex);
      auto& threads = state().threads;
      threads.erase(std::remove(threads.begin(), threads.end(), ended), threads.end());
    });
    LAMELLA_CHECK(error == 0, "expected a key of the threads library to be left, got error ",
                  error);
    return made;
  }();
  return key;
}

void barrier_on_all_cores() {
  if (state().membarrier && syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
    return;
  }
  // Without the system call: a store buffer drains within far less than this.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool readers_are_gone(std::chrono::steady_clock::time_point deadline) {
  barrier_on_all_cores();
  std::unique_lock<std::mutex> lock(state().mutex);
  std::vector<lamella_thread_state*> waiting;
  for (lamella_thread_state* thread : state().threads) {
    if (thread != &lamella_thread) waiting.push_back(thread);
  }
  int spins = 0;
  while (true) {
    // A thread may have ended meanwhile: only look at those still listed.
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(),
                                 [](lamella_thread_state* thread) {
                                   auto& all = state().threads;
                                   return std::find(all.begin(), all.end(), thread) == all.end() ||
                                          __atomic_load_n(&thread->readers, __ATOMIC_ACQUIRE) == 0;
                                 }),
                  waiting.end());
    if (waiting.empty()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    if (++spins < 64) continue;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    lock.lock();
  }
}

}  // namespace

void register_thread() {
  pthread_key_t key = thread_end_key();
  if (pthread_getspecific(key) != nullptr) return;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().threads.push_back(&lamella_thread);
  }
  pthread_setspecific(key, &lamella_thread);
}

bool inside_call() { return lamella_thread.readers != 0; }

bool wait_for_readers(int milliseconds) {
  return readers_are_gone(std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(milliseconds));
}

void retire(void (*destroy)(void*), void* object) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().retired.push_back({destroy, object});
}

void collect() {
  if (inside_call()) return;
  std::vector<Retired> ready;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    ready.swap(state().retired);
  }
  if (ready.empty()) return;
  if (!wait_for_readers(0)) {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().retired.insert(state().retired.end(), ready.begin(), ready.end());
    return;
  }
  for (const Retired& item : ready) item.destroy(item.object);
}

}  // namespace lamella::reclaim
