// The caching allocator of device memory.
//
// Note [Blocks of streams]
//   Memory comes from the driver in segments, which are split into blocks. A block belongs to the
//   stream that was current when it was allocated, and after its end it serves that stream alone:
//   work that still uses it comes before work that uses it anew. A tensor that other streams use
//   as well says so by record_stream(); such a block is free when events on those streams are done.
//   Sizes, segments and statistics are those that programs for PyTorch expect: small blocks (up to
//   1 MiB) lie in segments of 2 MiB, others in segments of 20 MiB or of their own size.
//
// Note [Pools of graphs]
//   A captured graph uses the addresses of its capture at each replay, so what is allocated on a
//   captured stream comes from a pool of the graph's own: memory that is freed during the capture
//   serves the rest of it, and other captures that name the pool, but nothing else while a
//   graph of the pool lives. Events are neither recorded nor asked for during a capture.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lamella::cuda {

// A count by pools: all, large ones, small ones.
struct Statistic {
  int64_t current[3] = {}, peak[3] = {}, increased[3] = {}, decreased[3] = {};
  void change(int pool, int64_t by) {
    for (int i = 0; i <= pool; i += pool) {
      current[i] += by;
      if (current[i] > peak[i]) peak[i] = current[i];
      (by > 0 ? increased : decreased)[i] += by > 0 ? by : -by;
    }
  }
};
enum StatisticName : int {
  kAllocations,
  kSegments,
  kActive,
  kInactiveSplits,
  kAllocatedBytes,
  kReservedBytes,
  kActiveBytes,
  kInactiveSplitBytes,
  kRequestedBytes,
  kStatistics,
};
struct MemoryStatistics {
  Statistic of[kStatistics];
  int64_t retries = 0, failures = 0;
  int64_t driver_allocations = 0, driver_frees = 0;
};

void* allocate(size_t bytes, int device, int64_t stream, void** block);
void deallocate(void* block) noexcept;
// Notes that work on another stream uses the memory. Throws for memory that is not the allocator's.
void record_stream(void* data, int device, int64_t stream);
// Gives segments without tensors back to the driver; waits for recorded streams.
void empty_cache(int device);
// The number of a new pool, and its use by captures: from begin_pool() to end_pool() the device's
// captured streams allocate from it; each begin_pool() is undone by a release_pool().
int64_t make_pool();
void begin_pool(int device, int64_t pool);
void end_pool(int device);
void release_pool(int device, int64_t pool);
MemoryStatistics memory_statistics(int device);
void reset_peaks(int device);
void reset_accumulated(int device);
// At most this share of the device's memory is taken.
void set_memory_fraction(int device, double fraction);
void memory_info(int device, size_t* free, size_t* total);

// ---- Pinned memory of the host: pinned.cpp ----

struct PinnedStatistics {
  int64_t used_bytes, kept_bytes, blocks;
};
void* allocate_pinned(size_t bytes, void** block);
// The block serves others when the copies that were noted with it are done.
void free_pinned(void* block) noexcept;
bool is_pinned(const void* data);
// Notes that work on a stream reads or writes the host memory; does nothing if it is not pinned.
void note_pinned_use(const void* data, int device, int64_t stream);
void empty_pinned_cache();
PinnedStatistics pinned_statistics();

}  // namespace lamella::cuda
