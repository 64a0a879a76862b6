// An allocator for tensors that detects out-of-bounds and uninitialised accesses. Internal to
// Lamella; for lamella.testing.opcheck.
//
// Note [Guarded memory]
//   While it is on, each new CPU storage gets its own mapping, with an inaccessible page before and
//   after it. The block's end, rounded up to 64 bytes, is at the end of a page. The margins
//   between the block and those pages are filled with a known byte: a write there is detected as
//   damage, and results that read there change with the byte. New memory is filled with another
//   known byte, so results that change with that one read elements that were never written. Freed
//   blocks stay inaccessible for a while. By GuardPlacement a block may also touch one of the two
//   pages; then it is aligned only as well as its size allows, like memory that a user provides.
#pragma once
#include <cstdint>

#include "lamella/core/macros.h"

namespace lamella::compliance {

// Where a block is placed between its two inaccessible pages.
enum class GuardPlacement : uint8_t {
  kAligned,  // aligned to 64 bytes, its end as near the page after it as that allows
  kFirst,    // the page before it ends where the block begins
  kLast,     // the page after it begins where the block ends
};

// `fresh` fills new blocks, `margin` their margins. Existing blocks keep their bytes.
LAMELLA_PRIVATE_API void set_guarded_memory(bool on, uint8_t fresh, uint8_t margin,
                                            GuardPlacement placement = GuardPlacement::kAligned);

struct GuardedMemory {
  int64_t blocks;   // alive now
  int64_t bytes;    // their requested size
  int64_t damaged;  // blocks with overwritten margins, so far
};
LAMELLA_PRIVATE_API GuardedMemory guarded_memory();

// From this call on, a forbidden access ends the process with kGuardFaultStatus, after writing one
// sentence about it to the file descriptor. For processes that run untested kernels.
inline constexpr int kGuardFaultStatus = 93;
LAMELLA_PRIVATE_API void report_guard_faults(int file_descriptor);

}  // namespace lamella::compliance
