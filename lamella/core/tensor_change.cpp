// Changes of tensors in place: of their sizes, their storage, and their base.
#include <mutex>
#include <unordered_map>
#include <utility>

#include "lamella/abi/backend.h"
#include "lamella/core/fork.h"
#include "lamella/core/tensor_header.h"
#include "lamella/core/version_counter.h"
#include "lamella/core/wrapper.h"

namespace lamella {
using namespace detail::header;

namespace {
// Former storages of bases that still have views.
struct Parked {
  fork::Held<std::mutex> mutex{fork::Level::kCore};
  std::unordered_multimap<const TensorImpl*, Storage*> storages;
};
Parked& parked() {
  static Parked* all = new Parked;  // never destroyed: tensors may outlive static destruction
  return *all;
}

// Takes over a reference to `fresh` and releases or parks the former storage.
void replace_storage(TensorImpl* t, Storage* fresh) {
  Storage* old = std::exchange(t->storage, fresh);
  // No address in the new memory was given out through this tensor.
  if ((t->flags & LAMELLA_TENSOR_WRAPPER) == 0)
    __atomic_store_n(&t->reserved, 0u, __ATOMIC_RELAXED);
  if (t->base != nullptr) {
    if (t->version_counter != 0) detail::retain_version_counter(t->version_counter);
    detail::release(std::exchange(t->base, nullptr));
  } else if (old != nullptr) {
    // Another reference to the tensor may come from a view of it.
    if (__atomic_load_n(&t->references, __ATOMIC_ACQUIRE) > 1) {
      std::lock_guard lock(parked().mutex);
      parked().storages.emplace(t, old);
      t->has_parked = 1;
    } else {
      storage_release(old);
    }
  }
}
}  // namespace

void leave_base(TensorImpl* t) {
  if (t->base == nullptr) return;
  if (t->storage != nullptr) storage_retain(t->storage);
  if (t->version_counter != 0) detail::retain_version_counter(t->version_counter);
  detail::release(std::exchange(t->base, nullptr));
}

void release_parked_storages(TensorImpl* t) noexcept {
  while (true) {
    Storage* storage;
    {
      std::lock_guard lock(parked().mutex);
      auto found = parked().storages.find(t);
      if (found == parked().storages.end()) return;
      storage = found->second;
      parked().storages.erase(found);
    }
    storage_release(storage);  // may run foreign code, so the lock is not held here
  }
}

void set_sizes_and_strides(TensorImpl* t, IntArrayRef sizes, IntArrayRef strides,
                           int64_t storage_offset) {
  fill_strided(t, sizes, strides, storage_offset);
  point_at_data(t);
}

namespace {
// Makes sure that the storage has `elements` elements from the tensor's offset on. Must be called
// before the sizes change.
void ensure_storage(TensorImpl* t, int64_t elements, IntArrayRef sizes, bool keep_contents) {
  if (elements == 0) return;
  auto dtype = static_cast<ScalarType>(t->scalar_type);
  int64_t last = 0;
  if (__builtin_add_overflow(elements, t->storage_offset, &last))
    detail::throw_bad_sizes(sizes, "resize_");
  auto bytes = static_cast<size_t>(checked_bytes(last, dtype, sizes, "resize_"));
  Storage* old = t->storage;
  Device device(static_cast<DeviceType>(t->device_type), t->device_index);
  if (old != nullptr && (bytes <= old->nbytes || bytes <= old->capacity || device.is_meta())) {
    if (bytes > old->nbytes) old->nbytes = bytes;
    return;
  }
  LAMELLA_CHECK(old == nullptr || (old->flags & kStorageForeign) == 0,
                "resize_: expected a tensor that owns its memory, got one over foreign memory of ",
                old == nullptr ? 0 : old->nbytes, " bytes where ", bytes, " are needed");
  bool copies = keep_contents && old != nullptr && old->nbytes != 0;
  Storage* fresh = make_storage(bytes, device);
  if (old != nullptr) {
    if (copies) {
      auto place = [&](void* data) {
        return lamella_place{data, static_cast<uint8_t>(device.type()), device.index()};
      };
      lamella_status status =
          lamella_device_copy(place(fresh->data), place(old->data), old->nbytes, 1);
      if (status != LAMELLA_OK) storage_release(fresh);
      detail::check(status);
    }
    fresh->version = old->version;
  }
  replace_storage(t, fresh);
}
}  // namespace

void resize_tensor(TensorImpl* t, IntArrayRef sizes, MemoryFormat format, bool keep_contents) {
  LAMELLA_CHECK(sizes.size() <= 64, "resize_: expected at most 64 dimensions, got ", sizes.size());
  LAMELLA_CHECK(format != MemoryFormat::Preserve,
                "resize_: expected a memory format other than preserve_format");
  int64_t numel = checked_numel(sizes, "resize_");
  int64_t strides[64];
  strides_of_format(sizes, format, strides);  // may throw, so before anything changes
  ensure_storage(t, numel, sizes, keep_contents);
  fill_strided(t, sizes, {strides, sizes.size()}, t->storage_offset);
  point_at_data(t);
}

void resize_tensor_strided(TensorImpl* t, IntArrayRef sizes, IntArrayRef strides) {
  checked_numel(sizes, "resize_");
  ensure_storage(t, storage_elements(sizes, strides, "resize_"), sizes, false);
  fill_strided(t, sizes, strides, t->storage_offset);
  point_at_data(t);
}

void set_storage(TensorImpl* t, Storage* storage, IntArrayRef sizes, IntArrayRef strides,
                 int64_t storage_offset) {
  fill_strided(t, sizes, strides, storage_offset);
  replace_storage(t, storage);
  point_at_data(t);
}

void shallow_copy_from(TensorImpl* t, const TensorImpl* source) {
  if (t == source) return;
  LAMELLA_CHECK(!is_batched(t) && !is_batched(source),
                "data: expected tensors that are not batched; write it with copy_() under vmap");
  auto dims = static_cast<size_t>(source->ndim);
  fill_strided(t, {source->sizes, dims}, {source->strides, dims}, source->storage_offset);
  if (source->storage != t->storage) {  // otherwise the tensor stays the base or view that it is
    if (t->version_counter == 0) count_apart(t, version_of(t));
    if (source->storage != nullptr) storage_retain(source->storage);
    replace_storage(t, source->storage);
  }
  t->scalar_type = source->scalar_type;
  t->device_type = source->device_type;
  t->device_index = source->device_index;
  t->layout = source->layout;
  constexpr uint32_t kept = LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_TANGENT;
  t->flags = (source->flags & ~kept) | (t->flags & kept);
  // Gradients, and the handler of the tensor's class, are its own.
  constexpr uint64_t own = kGradientBits | detail::functionality_bit(detail::Functionality::Python);
  t->key_set = (source->key_set & ~own) | (t->key_set & own);
  point_at_data(t);
}

}  // namespace lamella
