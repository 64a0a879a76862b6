// The functions of the pools that the CPU allocator calls. Internal.
#pragma once
#include <cstdint>

namespace lamella::detail {

struct PoolStatistics {
  int64_t bytes_in_use;
  int64_t bytes_cached;
  uint64_t system_allocations;
};
PoolStatistics pool_statistics();
// Counts blocks that do not come from the pools.
void pool_count_system(int64_t bytes, uint64_t system_allocations) noexcept;
void pool_empty_cache();

}  // namespace lamella::detail
