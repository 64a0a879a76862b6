// An allocator for tensors that detects out-of-bounds and uninitialised accesses. Internal to
// Lamella; for lamella.testing.opcheck.
//
// Note [Guarded memory]
//   While it is on, each new CPU storage stands in a mapping of its own: pages that must not be
//   accessed before and after, and its end, rounded up to 64 bytes, at the end of a page. Between
//   block and pages lie margins of a known byte; what is written there is damage, and what is read
//   there differs with the byte. New memory is filled with another known byte, so that results
//   that differ with it come from elements that were never written. Freed blocks stay inaccessible
//   for a while. A block may also touch the page before it or the page after it, like memory that a
//   program brings along; such a block is only as aligned as its elements are.
#pragma once
#include <cstdint>

#include "lamella/core/macros.h"

namespace lamella::compliance {

// Where a block stands between its two pages.
enum class GuardPlacement : uint8_t {
  kAligned,  // to 64 bytes, its end as near the page after it as that allows
  kFirst,    // the page before it ends where the block begins
  kLast,     // the page after it begins where the block ends
};

// `fresh` fills new memory, `margin` what lies around it. Blocks made before keep their bytes.
LAMELLA_PRIVATE_API void set_guarded_memory(bool on, uint8_t fresh, uint8_t margin,
                                            GuardPlacement placement = GuardPlacement::kAligned);

struct GuardedMemory {
  int64_t blocks;   // alive now
  int64_t bytes;    // of these, as asked for
  int64_t damaged;  // blocks around which something was written, so far
};
LAMELLA_PRIVATE_API GuardedMemory guarded_memory();

// From now on a forbidden access ends the process with this status, after it has written one
// sentence on it to the file descriptor. For processes that run unknown kernels.
inline constexpr int kGuardFaultStatus = 93;
LAMELLA_PRIVATE_API void report_guard_faults(int file_descriptor);

}  // namespace lamella::compliance
