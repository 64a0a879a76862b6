// Storage: the memory that tensors share, its reference count and its version counter. Internal.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/abi/abi.h"
#include "lamella/core/allocator.h"
#include "lamella/core/device.h"
#include "lamella/core/macros.h"
#include "lamella/core/memory_pool.h"
#include "lamella/core/reference_count.h"

struct alignas(64) lamella_storage {
  uint32_t references;  // atomic
  uint32_t version;     // writes so far, through any alias
  void* data;
  size_t nbytes;                  // as requested
  size_t capacity;                // bytes that `data` has, as told to the allocator
  lamella::Allocator* allocator;  // NULL: foreign memory, or `data` follows this header
  void (*deleter)(void*);         // of foreign memory, may be NULL
  void* context;                  // of the allocator or the deleter
  lamella::DeviceType device_type;
  lamella::DeviceIndex device_index;
  uint8_t block_class;  // pool class of the block that holds this header
  uint8_t flags;
  // Note [What is kept with a storage]. All three are atomic.
  uint8_t is_exposed;      // it may be written without being counted
  uint8_t has_kept_forms;  // kept_forms.cpp has a record of it
  uint16_t writes_apart;   // writes that `version` does not count
};

namespace lamella {

using Storage = lamella_storage;
static_assert(sizeof(Storage) == 64);

enum StorageFlags : uint8_t {
  kStorageReadOnly = 1,  // foreign memory that must not be written
  kStorageForeign = 2,   // not from an allocator: its tensors cannot grow
  kStorageCopied = 4,    // made as a copy for a DLPack exchange
};

namespace detail {
extern bool cpu_allocator_replaced;  // atomic
Storage* make_separate_storage(size_t nbytes, Device device);
void free_foreign_memory(Storage* storage) noexcept;

// Storages of at most this size have their memory behind the header, in one block.
inline constexpr size_t kMostInlineBytes = kPoolSmall - sizeof(Storage);

LAMELLA_ALWAYS_INLINE Storage* init_storage(void* block, int block_class, Device device, void* data,
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
  // device_type, device_index, block_class and zeros for the rest in one store.
  uint64_t kind = static_cast<uint8_t>(device.type()) |
                  static_cast<uint64_t>(static_cast<uint8_t>(device.index())) << 8 |
                  static_cast<uint64_t>(block_class) << 16;
  constexpr size_t at = offsetof(Storage, device_type);
  static_assert(offsetof(Storage, device_index) == at + 1 &&
                offsetof(Storage, block_class) == at + 2 && offsetof(Storage, flags) == at + 3 &&
                sizeof(Storage) == at + sizeof(kind));
  __builtin_memcpy(&s->device_type, &kind, sizeof(kind));
  return s;
}
}  // namespace detail

// Fresh memory on the device; one reference, which the caller owns. Meta storages have a size and
// no memory. Throws OutOfMemoryError or NotImplementedError.
LAMELLA_ALWAYS_INLINE Storage* make_storage(size_t nbytes, Device device) {
  if (LAMELLA_LIKELY(device.is_cpu() && nbytes - 1 < detail::kMostInlineBytes &&
                     !__atomic_load_n(&detail::cpu_allocator_replaced, __ATOMIC_ACQUIRE))) {
    int block_class = static_cast<int>((nbytes + sizeof(Storage) - 1) >> 6);
    void* block = detail::pool_allocate(block_class);
    return detail::init_storage(block, block_class, device, static_cast<Storage*>(block) + 1,
                                nbytes, static_cast<size_t>(block_class) << 6);
  }
  return detail::make_separate_storage(nbytes, device);
}
// A storage over the caller's memory; `deleter(context)` runs once when the storage ends. If this
// throws, the deleter has not run.
Storage* make_foreign_storage(void* data, size_t nbytes, Device device, void (*deleter)(void*),
                              void* context);
// Marks memory that may be written at any time without being counted, so that no packed forms are
// kept with it.
LAMELLA_ALWAYS_INLINE void expose_storage(Storage* storage) {
  __atomic_store_n(&storage->is_exposed, uint8_t{1}, __ATOMIC_RELAXED);
}
LAMELLA_ALWAYS_INLINE void storage_retain(Storage* storage) {
  detail::count_up(&storage->references);
}
LAMELLA_ALWAYS_INLINE void storage_release(Storage* storage) noexcept {
  // A sole owner needs no locked operation.
  if (__atomic_load_n(&storage->references, __ATOMIC_ACQUIRE) == 1 ||
      detail::count_down(&storage->references) == 0) {
    if (storage->allocator != nullptr || storage->deleter != nullptr) {
      detail::free_foreign_memory(storage);
    }
    detail::pool_free(storage, storage->block_class);
  }
}

}  // namespace lamella
