// See Note [Forking] in fork.h.
#include "lamella/core/fork.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <vector>

namespace lamella::fork {
namespace {

struct Lock {
  Level level;
  void* mutex;
  bool recursive;

  void take() const {
    recursive ? static_cast<std::recursive_mutex*>(mutex)->lock()
              : static_cast<std::mutex*>(mutex)->lock();
  }
  void give() const {
    recursive ? static_cast<std::recursive_mutex*>(mutex)->unlock()
              : static_cast<std::mutex*>(mutex)->unlock();
  }
  // The child cannot unlock a mutex that its parent locked, because its thread id differs.
  void make_anew() const {
    recursive ? static_cast<void>(new (mutex) std::recursive_mutex)
              : static_cast<void>(new (mutex) std::mutex);
  }
};
struct State {
  std::mutex mutex;
  std::vector<Lock> locks;  // by level
  std::vector<void (*)()> forgets;
};
State& state();

void give(const std::vector<Lock>& locks) {
  for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock) lock->give();
}
// Leaves the list locked as well. A library that is being loaded adds its locks to the list while
// the thread that loads it holds one, so the list is free while this waits for that one.
void prepare() {
  for (;;) {
    state().mutex.lock();
    std::vector<Lock> known = state().locks;
    state().mutex.unlock();
    for (const Lock& lock : known) lock.take();
    state().mutex.lock();
    if (state().locks.size() == known.size()) return;
    state().mutex.unlock();
    give(known);
  }
}
void in_parent() {
  give(state().locks);
  state().mutex.unlock();
}
void start_child() {
  for (const Lock& lock : state().locks) lock.make_anew();
  new (&state().mutex) std::mutex;
  for (void (*forget)() : state().forgets) forget();
}

// Never destroyed: a process may fork while it ends.
State& state() {
  static State* made = [] {
    pthread_atfork(&prepare, &in_parent, &start_child);
    return new State;
  }();
  return *made;
}

void add(Lock added) {
  std::lock_guard<std::mutex> guard(state().mutex);
  auto& locks = state().locks;
  auto after = std::upper_bound(locks.begin(), locks.end(), added.level,
                                [](Level level, const Lock& lock) { return level < lock.level; });
  locks.insert(after, added);
}

}  // namespace

void hold(Level level, std::mutex* mutex) { add({level, mutex, false}); }
void hold(Level level, std::recursive_mutex* mutex) { add({level, mutex, true}); }
void in_child(void (*forget)()) {
  std::lock_guard<std::mutex> guard(state().mutex);
  state().forgets.push_back(forget);
}

}  // namespace lamella::fork
