// Version counters of tensors that do not use their storage's count: Note [Who counts writes].
#include "lamella/core/version_counter.h"

#include <mutex>

#include "lamella/core/error.h"

namespace lamella {

namespace {

struct Counter {
  uint32_t references;
  uint32_t version;  // of a free one: the next free one
};

// Counters never move, so that a number is enough to find one without a lock: block k has 64 << k.
constexpr uint32_t kFirstBlock = 64;
constexpr int kBlocks = 26;
struct Counters {
  std::mutex mutex;
  Counter* blocks[kBlocks] = {};
  uint32_t used = 1;  // number 0 stands for none
  uint32_t free = 0;
};
Counters& all() {
  static Counters* counters = new Counters;  // never destroyed: tensors may outlive it
  return *counters;
}

int block_of(uint32_t number) { return 31 - __builtin_clz(number + kFirstBlock) - 6; }
Counter& counter_of(uint32_t number) {
  int block = block_of(number);
  return all().blocks[block][number + kFirstBlock - (kFirstBlock << block)];
}

}  // namespace

namespace detail {

uint32_t make_version_counter(uint32_t version) {
  Counters& counters = all();
  std::lock_guard lock(counters.mutex);
  uint32_t number = counters.free;
  if (number != 0) {
    counters.free = counter_of(number).version;
  } else {
    int block = block_of(counters.used);
    LAMELLA_CHECK(block < kBlocks, "data: expected fewer tensors that count their own writes");
    if (counters.blocks[block] == nullptr) {
      counters.blocks[block] = new Counter[kFirstBlock << block];
    }
    number = counters.used++;
  }
  counter_of(number) = {1, version};
  return number;
}

void retain_version_counter(uint32_t number) { detail::count_up(&counter_of(number).references); }

void release_version_counter(uint32_t number) noexcept {
  Counter& counter = counter_of(number);
  if (detail::count_down(&counter.references) != 0) return;
  Counters& counters = all();
  std::lock_guard lock(counters.mutex);
  counter.version = std::exchange(counters.free, number);
}

uint32_t* version_counter(uint32_t number) { return &counter_of(number).version; }

void bump_apart(TensorImpl* t) {
  uint32_t* version = version_counter(t->version_counter);
  __atomic_store_n(version, __atomic_load_n(version, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
  if (t->storage == nullptr) return;
  uint16_t* writes = &t->storage->writes_apart;
  auto count = static_cast<uint16_t>(__atomic_load_n(writes, __ATOMIC_RELAXED) + 1);
  __atomic_store_n(writes, count, __ATOMIC_RELAXED);
  if (count == UINT16_MAX) expose_storage(t->storage);  // the next count would wrap to 0
}

}  // namespace detail

void count_apart(TensorImpl* t, uint32_t version) {
  uint32_t fresh = detail::make_version_counter(version);
  uint32_t old = std::exchange(t->version_counter, fresh);
  if (old != 0 && t->base == nullptr) detail::release_version_counter(old);
}

}  // namespace lamella
