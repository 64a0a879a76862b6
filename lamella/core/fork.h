// Locks that are held while the process forks, so that the child finds consistent data. Internal.
//
// Note [Forking]
//   A child has one thread, and a copy of every lock as it was. A lock that another thread held
//   would stay locked for ever, over data that was half changed. So the thread that forks first
//   takes all locks of this list, outermost first, which waits until every critical section is
//   left. The child constructs the locks anew and drops the state of threads that it does not have.
//   The initialisation guard of a function's static variable is such a lock too, but cannot be
//   taken before a fork: if another thread forks during the initialisation, the child's first use
//   of the variable waits for ever. So locks of the list are namespace-scope variables, initialised
//   when their library is loaded, and initialisation that is slow or takes such a lock uses Once.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "lamella/core/macros.h"

namespace lamella::fork {

// A lock of a lower level may be held while one of a higher level is taken, never the reverse.
enum class Level : uint8_t {
  kLoading,
  kPython,
  kGraph,
  kLayers,
  kRegistry,
  kReclaim,
  kLibraries,
  kCore,
  kMemory
};

// The mutex must live as long as the process.
LAMELLA_PRIVATE_API void hold(Level level, std::mutex* mutex);
LAMELLA_PRIVATE_API void hold(Level level, std::recursive_mutex* mutex);
// Runs in the child, after its locks were made anew, in order of registration.
LAMELLA_PRIVATE_API void in_child(void (*forget)());

// A mutex for namespace scope that adds itself to the list.
template <class Mutex>
class Held : public Mutex {
 public:
  explicit Held(Level level) { hold(level, static_cast<Mutex*>(this)); }
};

// For namespace scope: runs a function once; a fork waits until it has run. It runs again after an
// exception. The function may take locks of levels above kLayers, and load a library that adds
// locks to the list.
class Once {
 public:
  template <class F>
  void operator()(F&& f) {
    if (done_.load(std::memory_order_acquire)) return;
    std::lock_guard<std::recursive_mutex> lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    f();
    done_.store(true, std::memory_order_release);
  }

 private:
  Held<std::recursive_mutex> mutex_{Level::kLayers};
  std::atomic<bool> done_{false};
};

}  // namespace lamella::fork
