// The levels of a thread.
#include <atomic>

#include "lamella/core/error.h"
#include "lamella/layers/vmap/vmap.h"

namespace lamella::vmap {
namespace {

// Plain pointers: the library's thread-local block has no room for destructors.
thread_local Level* innermost_level = nullptr;
std::atomic<uint32_t> last_number{0};

}  // namespace

uint32_t next_level_number() {
  uint32_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  return number != 0 ? number : next_level_number();  // 0 is not a valid level
}

void enter(Level* level) {
  level->outer = innermost_level;
  innermost_level = level;
  lamella_thread.included |= kModeBit;
}

void leave(Level* level) {
  for (Level* at = innermost_level; at != nullptr; at = at->outer) {
    if (at != level) continue;
    innermost_level = level->outer;
    break;
  }
  if (innermost_level == nullptr) lamella_thread.included &= ~kModeBit;
}

Level* innermost() { return innermost_level; }

Level* find_level(uint32_t number) {
  Level* at = innermost_level;
  while (at != nullptr && at->number != number) at = at->outer;
  return at;
}

Level& level_of(const lamella_tensor* t, const char* who) {
  Level* level = find_level(level_number(t));
  LAMELLA_CHECK(level != nullptr, who,
                ": expected tensors of a vmap that is running on this thread, got a batched tensor "
                "of one that has ended (or runs on another thread); return it from the function "
                "that vmap was given instead of keeping it");
  return *level;
}

Reentry::Reentry(uint32_t number, int64_t size) : entered_(find_level(number) == nullptr) {
  if (!entered_) return;
  level_.number = number;
  level_.size = size;
  enter(&level_);
}
Reentry::~Reentry() {
  if (entered_) leave(&level_);
}

}  // namespace lamella::vmap
