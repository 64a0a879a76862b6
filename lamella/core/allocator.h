// Memory of tensors: an allocator for each device that can be replaced, and the CPU's own.
//
// Note [The CPU allocator]
//   Blocks are aligned to 64 bytes and freed with their size, so they need no header. Small and
//   medium ones (below 1 MiB) are cached in free lists of size classes, first per thread without
//   any locked operation, then centrally. Large ones are mapped from the system with huge pages
//   and kept for reuse up to a bound, the oldest going back first. A block may be freed on any
//   thread; a thread that ends gives its cache to the centre. Builds under ASan and TSan allocate
//   every block from the system, so that the sanitizers see its life.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/core/device.h"
#include "lamella/core/macros.h"

namespace lamella {

// Serves the storages of one device type. Must live until the process ends and be thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least `bytes` (> 0) bytes on device `index`. Throws OutOfMemoryError. *context is handed
  // back to deallocate.
  virtual void* allocate(size_t bytes, DeviceIndex index, void** context) = 0;
  virtual void deallocate(void* data, size_t bytes, DeviceIndex index, void* context) noexcept = 0;
};

// Replaces the allocator for storages made from now on; NULL brings the default back. Returns the
// one before.
Allocator* set_allocator(DeviceType type, Allocator* allocator);
// Throws NotImplementedError where there is none.
Allocator* get_allocator(DeviceType type);

// Memory from the CPU's own allocator, whatever set_allocator() says. `bytes` must be the same in
// both calls. Throws OutOfMemoryError; zero bytes give NULL.
LAMELLA_PRIVATE_API void* cpu_allocate(size_t bytes);
LAMELLA_PRIVATE_API void cpu_free(void* data, size_t bytes) noexcept;

struct CpuMemoryStatistics {
  int64_t bytes_in_use;         // handed out, rounded up to size classes
  int64_t bytes_cached;         // kept for reuse, centrally and in all threads
  uint64_t system_allocations;  // since the start: blocks that no cache could serve
};
CpuMemoryStatistics cpu_memory_statistics();
// Gives this thread's and the central caches back to the system.
LAMELLA_PRIVATE_API void empty_cpu_cache();
// Bounds what the cache of large blocks keeps; returns the bound before.
size_t set_cpu_cache_limit(size_t bytes);

}  // namespace lamella
