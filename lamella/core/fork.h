// What must hold still while the process forks. Internal.
//
// Note [Forking]
//   A child has one thread, and a copy of every lock as it was. A lock that another thread held
//   would stay locked for ever, over data that was half changed. So the thread that forks takes all
//   locks of this list first, outermost first, which waits until nobody is in the middle of
//   anything; the child makes them anew, and what was kept for threads that it does not have is
//   forgotten there.
//   A static variable of a function has such a lock as well, which nobody can take before a fork: a
//   thread that is making one while another forks leaves it in the making in the child, whose first
//   use waits for ever. So locks of the list stand outside of functions, where they are made while
//   their library is loaded, and what takes one of them, or long, is made by Once instead.
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

// A mutex for static storage outside of functions that holds still by itself.
template <class Mutex>
class Held : public Mutex {
 public:
  explicit Held(Level level) { hold(level, static_cast<Mutex*>(this)); }
};

// For static storage outside of functions: runs something once. A fork waits until it has run. It
// runs again after an exception. It may take locks of levels above kLayers, and load a library that
// adds some to the list.
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
