// The slow half of the pools: refills, flushes, the central lists, and threads that come and go.
#include "lamella/core/memory_pool.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/memory_pool_central.h"

namespace lamella::detail {

__thread ThreadPool* thread_pool __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr size_t kThreadBytesPerClass = size_t{256} << 10;
constexpr int64_t kCentralBytes = int64_t{64} << 20;

struct Central {
  std::mutex mutex;
  FreeBlock* lists[kPoolClasses] = {};
  int64_t bytes_cached = 0;
  uint64_t system_allocations = 0;
  // Threads' pools, and what ended threads and pool-less frees have counted.
  ThreadPool* pools = nullptr;
  int64_t bytes_in_use = 0;
  pthread_key_t key{};
  Central();
};

// Never destroyed: tensors in static objects may be freed at any time.
Central& central() {
  static Central* instance = new Central();
  return *instance;
}

void* system_allocate(size_t bytes) {
  void* data = nullptr;
  if (posix_memalign(&data, 64, bytes) != 0) {
    throw OutOfMemoryError(str("could not allocate ", bytes, " bytes on cpu"));
  }
  return data;
}

LAMELLA_ALWAYS_INLINE void add_taken(ThreadPool::List& list, int64_t blocks) {
  __atomic_store_n(&list.taken, list.taken + blocks, __ATOMIC_RELAXED);
}

// Takes over the list; blocks that do not fit the central list go back to the system.
void give_to_central(Central& c, FreeBlock* first, int index) noexcept {
  auto bytes = static_cast<int64_t>(pool_class_bytes(index));
  FreeBlock* surplus = nullptr;
  {
    std::lock_guard lock(c.mutex);
    while (first != nullptr && c.bytes_cached + bytes <= kCentralBytes) {
      FreeBlock* next = first->next;
      first->next = c.lists[index];
      c.lists[index] = first;
      c.bytes_cached += bytes;
      first = next;
    }
    surplus = first;
  }
  while (surplus != nullptr) {
    FreeBlock* next = surplus->next;
    std::free(surplus);
    surplus = next;
  }
}

void drain(Central& c, ThreadPool* pool) noexcept {
  for (int i = 0; i < kPoolClasses; ++i) {
    ThreadPool::List& list = pool->lists[i];
    FreeBlock* first = list.head;
    add_taken(list, -static_cast<int64_t>(list.count));
    list.head = nullptr;
    __atomic_store_n(&list.count, 0, __ATOMIC_RELAXED);
    if (first != nullptr) give_to_central(c, first, i);
  }
}

void end_thread(void* argument) {
  auto* pool = static_cast<ThreadPool*>(argument);
  Central& c = central();
  thread_pool = nullptr;
  drain(c, pool);
  {
    std::lock_guard lock(c.mutex);
    *pool->link = pool->next;
    if (pool->next != nullptr) pool->next->link = pool->link;
    for (int i = 0; i < kPoolClasses; ++i) {
      c.bytes_in_use += static_cast<int64_t>(pool_class_bytes(i)) * pool->lists[i].taken;
    }
  }
  std::free(pool);
}

Central::Central() {
  pthread_key_create(&key, &end_thread);
  fork::hold(fork::Level::kMemory, &mutex);
}

ThreadPool* start_thread(Central& c) noexcept {
  auto* pool = static_cast<ThreadPool*>(std::calloc(1, sizeof(ThreadPool)));
  if (pool == nullptr) return nullptr;
  for (int i = 0; i < kPoolClasses; ++i) {
    size_t fit = kThreadBytesPerClass / pool_class_bytes(i);
    pool->lists[i].limit = static_cast<uint32_t>(fit < 2 ? 2 : fit > 256 ? 256 : fit);
  }
  if (pthread_setspecific(c.key, pool) != 0) {
    std::free(pool);
    return nullptr;
  }
  {
    std::lock_guard lock(c.mutex);
    pool->next = c.pools;
    pool->link = &c.pools;
    if (c.pools != nullptr) c.pools->link = &pool->next;
    c.pools = pool;
  }
  thread_pool = pool;
  return pool;
}

}  // namespace

void* pool_refill(int index) {
  Central& c = central();
  ThreadPool* pool = thread_pool != nullptr ? thread_pool : start_thread(c);
  size_t bytes = pool_class_bytes(index);
  void* result = nullptr;
  if (!LAMELLA_POOL_BYPASS && pool != nullptr) {
    ThreadPool::List& list = pool->lists[index];
    std::lock_guard lock(c.mutex);
    while (c.lists[index] != nullptr && list.count < list.limit / 2 + 1) {
      FreeBlock* block = c.lists[index];
      c.lists[index] = block->next;
      c.bytes_cached -= static_cast<int64_t>(bytes);
      if (result == nullptr) {
        result = block;
        continue;
      }
      block->next = list.head;
      list.head = block;
      ++list.count;
      add_taken(list, 1);
    }
  }
  if (result == nullptr) {
    result = system_allocate(bytes);
    pool_count_system(0, 1);
  }
  if (pool != nullptr) {
    add_taken(pool->lists[index], 1);
  } else {
    pool_count_system(static_cast<int64_t>(bytes), 0);
  }
  return result;
}

void pool_flush(void* data, int index) noexcept {
  Central& c = central();
  ThreadPool* pool = thread_pool != nullptr ? thread_pool : start_thread(c);
  if (pool == nullptr) pool_count_system(-static_cast<int64_t>(pool_class_bytes(index)), 0);
  if (LAMELLA_POOL_BYPASS) {
    if (pool != nullptr) add_taken(pool->lists[index], -1);
    std::free(data);
    return;
  }
  auto* block = static_cast<FreeBlock*>(data);
  block->next = nullptr;
  if (pool != nullptr) {
    // Keeps the half that was freed last.
    ThreadPool::List& list = pool->lists[index];
    if (list.count >= list.limit) {
      uint32_t keep = list.limit / 2;
      FreeBlock* last = list.head;
      for (uint32_t i = 1; i < keep; ++i) last = last->next;
      FreeBlock* surplus = last->next;
      last->next = nullptr;
      add_taken(list, static_cast<int64_t>(keep) - static_cast<int64_t>(list.count));
      list.count = keep;
      give_to_central(c, surplus, index);
    }
    block->next = list.head;
    list.head = block;
    ++list.count;
    return;
  }
  give_to_central(c, block, index);
}

void pool_count_system(int64_t bytes, uint64_t system_allocations) noexcept {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  c.bytes_in_use += bytes;
  c.system_allocations += system_allocations;
}

PoolStatistics pool_statistics() {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  PoolStatistics s{c.bytes_in_use, c.bytes_cached, c.system_allocations};
  for (ThreadPool* p = c.pools; p != nullptr; p = p->next) {
    for (int i = 0; i < kPoolClasses; ++i) {
      auto bytes = static_cast<int64_t>(pool_class_bytes(i));
      int64_t cached = __atomic_load_n(&p->lists[i].count, __ATOMIC_RELAXED);
      s.bytes_cached += bytes * cached;
      s.bytes_in_use += bytes * (__atomic_load_n(&p->lists[i].taken, __ATOMIC_RELAXED) - cached);
    }
  }
  return s;
}

void pool_empty_cache() {
  Central& c = central();
  if (thread_pool != nullptr) drain(c, thread_pool);
  FreeBlock* lists[kPoolClasses];
  {
    std::lock_guard lock(c.mutex);
    for (int i = 0; i < kPoolClasses; ++i) {
      lists[i] = c.lists[i];
      c.lists[i] = nullptr;
    }
    c.bytes_cached = 0;
  }
  for (FreeBlock* first : lists) {
    while (first != nullptr) {
      FreeBlock* next = first->next;
      std::free(first);
      first = next;
    }
  }
}

}  // namespace lamella::detail
