// The allocators of the devices, and the large blocks of the CPU's.
#include "lamella/core/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <list>
#include <mutex>

#include "lamella/core/cuda_loading.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/memory_pool.h"
#include "lamella/core/memory_pool_central.h"
#include "lamella/core/storage.h"

namespace lamella {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMostCached = size_t{2} << 30;

// Eight size classes for each doubling. Below 16 MiB a block may end inside a huge page; that tail
// uses small pages, since a whole huge page would be mostly unrequested memory.
size_t large_class_bytes(size_t bytes) {
  size_t step = size_t{1} << (63 - __builtin_clzll(bytes) - 3);
  return (bytes + step - 1) / step * step;
}

// The cache of mapped blocks, oldest first.
class LargeBlocks {
 public:
  LargeBlocks() { fork::hold(fork::Level::kCore, &mutex_); }
  void* allocate(size_t bytes) {
    if (bytes > size_t{1} << 62) fail(bytes);
    size_t rounded = large_class_bytes(bytes);
    {
      std::lock_guard lock(mutex_);
      // Takes the block freed last: its pages are the likeliest to be in a processor cache.
      for (auto it = blocks_.rbegin(); it != blocks_.rend(); ++it) {
        if (it->bytes != rounded) continue;
        void* data = it->data;
        cached_ -= rounded;
        blocks_.erase(std::next(it).base());
        detail::pool_count_system(static_cast<int64_t>(rounded), 0);
        return data;
      }
    }
    void* data = map(rounded);
    if (data == nullptr) {  // out of memory: releases the caches and tries again
      empty();
      detail::pool_empty_cache();
      data = map(rounded);
      if (data == nullptr) fail(bytes);
    }
    detail::pool_count_system(static_cast<int64_t>(rounded), 1);
    return data;
  }

  void free(void* data, size_t bytes) noexcept {
    size_t rounded = large_class_bytes(bytes);
    detail::pool_count_system(-static_cast<int64_t>(rounded), 0);
    std::lock_guard lock(mutex_);
    if (rounded > limit_ || LAMELLA_POOL_BYPASS) {
      unmap(data, rounded);
      return;
    }
    try {
      blocks_.push_back({data, rounded});
    } catch (...) {  // no memory to record it: do not keep the block
      unmap(data, rounded);
      return;
    }
    cached_ += rounded;
    trim();
  }

  void empty() {
    std::lock_guard lock(mutex_);
    for (const Block& block : blocks_) unmap(block.data, block.bytes);
    blocks_.clear();
    cached_ = 0;
  }
  size_t cached() {
    std::lock_guard lock(mutex_);
    return cached_;
  }
  size_t set_limit(size_t bytes) {
    std::lock_guard lock(mutex_);
    size_t before = limit_;
    limit_ = bytes;
    trim();
    return before;
  }

 private:
  struct Block {
    void* data;
    size_t bytes;
  };

  [[noreturn]] static void fail(size_t bytes) {
    throw OutOfMemoryError(str("could not allocate ", bytes, " bytes on cpu"));
  }
  static size_t default_limit() {
    auto physical =
        static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return physical / 8 < kMostCached ? physical / 8 : kMostCached;
  }
  void trim() {
    while (cached_ > limit_) {
      unmap(blocks_.front().data, blocks_.front().bytes);
      cached_ -= blocks_.front().bytes;
      blocks_.pop_front();
    }
  }

  static void* map(size_t bytes) {
#if LAMELLA_POOL_BYPASS
    if (bytes >= size_t{1} << 40) return nullptr;  // where a sanitizer would end the program
    void* data = nullptr;
    return posix_memalign(&data, 64, bytes) == 0 ? data : nullptr;
#else
    // Blocks of huge pages begin on one: map more, then cut the ends off.
    size_t extra = bytes >= kHugePage ? kHugePage : 0;
    void* raw =
        mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    if (extra == 0) return raw;
    auto begin = reinterpret_cast<uintptr_t>(raw);
    uintptr_t aligned = (begin + kHugePage - 1) & ~(uintptr_t{kHugePage} - 1);
    if (aligned != begin) munmap(raw, aligned - begin);
    size_t tail = begin + extra - aligned;
    if (tail != 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
    auto* data = reinterpret_cast<void*>(aligned);
    madvise(data, bytes, MADV_HUGEPAGE);  // only a hint: failure is harmless
    return data;
#endif
  }
  static void unmap(void* data, size_t bytes) noexcept {
#if LAMELLA_POOL_BYPASS
    static_cast<void>(bytes);
    std::free(data);
#else
    munmap(data, bytes);
#endif
  }

  std::mutex mutex_;
  std::list<Block> blocks_;
  size_t cached_ = 0;
  size_t limit_ = default_limit();
};

// Never destroyed: tensors in static objects may be freed at any time.
LargeBlocks& large_blocks() {
  static auto* instance = new LargeBlocks();
  return *instance;
}
// They are made while the library is loaded: see Note [Forking].
[[maybe_unused]] const LargeBlocks& made_at_load = large_blocks();

class CpuAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes, DeviceIndex, void**) override { return cpu_allocate(bytes); }
  void deallocate(void* data, size_t bytes, DeviceIndex, void*) noexcept override {
    cpu_free(data, bytes);
  }
};

CpuAllocator* default_cpu_allocator() {
  static auto* instance = new CpuAllocator();
  return instance;
}

// NULL: the default.
Allocator* allocators[kDeviceTypes] = {};

}  // namespace

Allocator* set_allocator(DeviceType type, Allocator* allocator) {
  auto index = static_cast<size_t>(type);
  LAMELLA_CHECK(index < kDeviceTypes, "set_allocator: expected a known device type, got ",
                static_cast<int>(type));
  Allocator* before = __atomic_exchange_n(&allocators[index], allocator, __ATOMIC_ACQ_REL);
  if (type == DeviceType::CPU) {
    __atomic_store_n(&detail::cpu_allocator_replaced, allocator != nullptr, __ATOMIC_RELEASE);
    if (before == nullptr) before = default_cpu_allocator();
  }
  return before;
}

Allocator* get_allocator(DeviceType type) {
  auto index = static_cast<size_t>(type);
  Allocator* allocator =
      index < kDeviceTypes ? __atomic_load_n(&allocators[index], __ATOMIC_ACQUIRE) : nullptr;
  if (allocator == nullptr && type == DeviceType::CPU) return default_cpu_allocator();
  if (LAMELLA_UNLIKELY(allocator == nullptr && type == DeviceType::CUDA)) {
    load_cuda();
    allocator = __atomic_load_n(&allocators[index], __ATOMIC_ACQUIRE);
  }
  LAMELLA_CHECK_NOT_IMPLEMENTED(
      allocator != nullptr, "empty: expected a device with an allocator, got ", type,
      type == DeviceType::CUDA ? str("; ", cuda_obstacle()) : std::string());
  return allocator;
}

void* cpu_allocate(size_t bytes) {
  if (LAMELLA_UNLIKELY(bytes == 0)) return nullptr;
  if (LAMELLA_LIKELY(bytes <= detail::kPoolLimit)) {
    return detail::pool_allocate(detail::pool_class(bytes));
  }
  return large_blocks().allocate(bytes);
}

void cpu_free(void* data, size_t bytes) noexcept {
  if (LAMELLA_UNLIKELY(data == nullptr)) return;
  if (LAMELLA_LIKELY(bytes <= detail::kPoolLimit)) {
    detail::pool_free(data, detail::pool_class(bytes));
  } else {
    large_blocks().free(data, bytes);
  }
}

LAMELLA_PRIVATE_API CpuMemoryStatistics cpu_memory_statistics() {
  detail::PoolStatistics s = detail::pool_statistics();
  return {s.bytes_in_use, s.bytes_cached + static_cast<int64_t>(large_blocks().cached()),
          s.system_allocations};
}

void empty_cpu_cache() {
  detail::pool_empty_cache();
  large_blocks().empty();
}

size_t set_cpu_cache_limit(size_t bytes) { return large_blocks().set_limit(bytes); }

}  // namespace lamella
