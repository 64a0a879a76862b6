// Storage: creation and end.
#include "lamella/core/storage.h"

#include "lamella/core/error.h"
#include "lamella/core/memory_pool.h"

namespace lamella {
namespace detail {

bool cpu_allocator_replaced = false;

namespace {

constexpr int kHeaderClass = pool_class(sizeof(Storage));
// Up to here the memory stands behind the header, in one block.
constexpr size_t kMostInline = kPoolSmall - sizeof(Storage);

LAMELLA_ALWAYS_INLINE Storage* fill(void* block, int block_class, Device device, void* data,
                                    size_t nbytes, size_t capacity) {
  auto* s = static_cast<Storage*>(block);
  s->references = 1;
  s->version = 0;
  s->data = data;
  s->nbytes = nbytes;
  s->capacity = capacity;
  s->allocator = nullptr;
  s->deleter = nullptr;
  s->context = nullptr;
  s->device_type = device.type();
  s->device_index = device.index();
  s->block_class = static_cast<uint8_t>(block_class);
  s->flags = 0;
  return s;
}

void free_memory(Storage* s) noexcept {
  if (s->allocator != nullptr) {
    s->allocator->deallocate(s->data, s->capacity, s->device_index, s->context);
  } else if (s->deleter != nullptr) {
    s->deleter(s->context);
  }
}

Storage* make_separate_storage(size_t nbytes, Device device) {
  bool memory = nbytes != 0 && device.type() != DeviceType::Meta;
  Allocator* allocator = memory ? get_allocator(device.type()) : nullptr;
  Storage* s = fill(pool_allocate(kHeaderClass), kHeaderClass, device, nullptr, nbytes, 0);
  if (!memory) return s;
  try {
    s->data = allocator->allocate(nbytes, device.index(), &s->context);
  } catch (...) {
    pool_free(s, kHeaderClass);
    throw;
  }
  s->allocator = allocator;
  s->capacity = nbytes;
  return s;
}

}  // namespace

void storage_destroy(Storage* s) noexcept {
  free_memory(s);
  pool_free(s, s->block_class);
}

}  // namespace detail

Storage* make_storage(size_t nbytes, Device device) {
  if (LAMELLA_LIKELY(device.is_cpu() && nbytes - 1 < detail::kMostInline &&
                     !__atomic_load_n(&detail::cpu_allocator_replaced, __ATOMIC_ACQUIRE))) {
    int block_class = detail::pool_class(nbytes + sizeof(Storage));
    void* block = detail::pool_allocate(block_class);
    size_t capacity = detail::pool_class_bytes(block_class) - sizeof(Storage);
    return detail::fill(block, block_class, device, static_cast<Storage*>(block) + 1, nbytes,
                        capacity);
  }
  return detail::make_separate_storage(nbytes, device);
}

Storage* make_foreign_storage(void* data, size_t nbytes, Device device, void (*deleter)(void*),
                              void* context) {
  Storage* s = detail::fill(detail::pool_allocate(detail::kHeaderClass), detail::kHeaderClass,
                            device, data, nbytes, nbytes);
  s->deleter = deleter;
  s->context = context;
  s->flags = kStorageForeign;
  return s;
}

}  // namespace lamella
