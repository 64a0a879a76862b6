// The fast half of the CPU allocator: size classes and this thread's free lists. Internal.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/core/macros.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAMELLA_POOL_BYPASS 1
#else
#define LAMELLA_POOL_BYPASS 0
#endif

namespace lamella::detail {

// Up to 1 KiB in steps of 64 bytes, up to 1 MiB in four steps for each doubling.
inline constexpr size_t kPoolSmall = 1024;
inline constexpr size_t kPoolLimit = size_t{1} << 20;
inline constexpr int kPoolClasses = 16 + 10 * 4;

// bytes: 1 to kPoolLimit.
inline constexpr int pool_class(size_t bytes) {
  if (LAMELLA_LIKELY(bytes <= kPoolSmall)) return static_cast<int>((bytes - 1) >> 6);
  int doubling = 63 - __builtin_clzll(bytes - 1);  // 2^doubling < bytes <= 2^(doubling + 1)
  int step = static_cast<int>((bytes - 1) >> (doubling - 2)) & 3;
  return 16 + (doubling - 10) * 4 + step;
}
inline constexpr size_t pool_class_bytes(int index) {
  if (index < 16) return static_cast<size_t>(index + 1) << 6;
  int doubling = 10 + (index - 16) / 4;
  int step = (index - 16) % 4;
  return static_cast<size_t>(step + 5) << (doubling - 2);
}
static_assert(pool_class_bytes(kPoolClasses - 1) == kPoolLimit);
static_assert(pool_class(1) == 0 && pool_class(1024) == 15 && pool_class(1025) == 16 &&
              pool_class(1280) == 16 && pool_class(1281) == 17 && pool_class(2048) == 19);

struct FreeBlock {
  FreeBlock* next;
};
struct ThreadPool {
  // Written by the owning thread alone; others read `count` and `taken` for statistics. What the
  // thread has handed out is taken - count, so the fast path keeps no counter of its own.
  struct List {
    FreeBlock* head;
    uint32_t count;
    uint32_t limit;
    int64_t taken;  // blocks that came in from the centre or the system, less those given back
  };
  List lists[kPoolClasses];
  ThreadPool* next;
  ThreadPool** link;
};

// NULL until the thread's first allocation. Initial-exec: 8 bytes of the static TLS block.
extern __thread ThreadPool* thread_pool __attribute__((tls_model("initial-exec")));

// The slow halves: refill, flush, start of a thread.
void* pool_refill(int index);
void pool_flush(void* block, int index) noexcept;

// A block of the class; 64-byte aligned. Throws OutOfMemoryError.
LAMELLA_ALWAYS_INLINE void* pool_allocate(int index) {
#if !LAMELLA_POOL_BYPASS
  ThreadPool* pool = thread_pool;
  if (LAMELLA_LIKELY(pool != nullptr)) {
    ThreadPool::List& list = pool->lists[index];
    FreeBlock* block = list.head;
    if (LAMELLA_LIKELY(block != nullptr)) {
      list.head = block->next;
      --list.count;
      return block;
    }
  }
#endif
  return pool_refill(index);
}

LAMELLA_ALWAYS_INLINE void pool_free(void* data, int index) noexcept {
#if !LAMELLA_POOL_BYPASS
  ThreadPool* pool = thread_pool;
  if (LAMELLA_LIKELY(pool != nullptr)) {
    ThreadPool::List& list = pool->lists[index];
    if (LAMELLA_LIKELY(list.count < list.limit)) {
      auto* block = static_cast<FreeBlock*>(data);
      block->next = list.head;
      list.head = block;
      ++list.count;
      return;
    }
  }
#endif
  pool_flush(data, index);
}

}  // namespace lamella::detail
