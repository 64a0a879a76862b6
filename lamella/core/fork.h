// What must hold still while the process forks. Internal.
//
// Note [Forking]
//   A child has one thread, and a copy of every lock as it was. A lock that another thread held
//   would stay locked for ever, over data that was half changed. So the thread that forks takes all
//   locks of this list first, outermost first, which waits until nobody is in the middle of
//   anything; the child makes them anew, and what was kept for threads that it does not have is
//   forgotten there.
#pragma once
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

// A mutex for static storage that holds still by itself.
template <class Mutex>
class Held : public Mutex {
 public:
  explicit Held(Level level) { hold(level, static_cast<Mutex*>(this)); }
};

}  // namespace lamella::fork
