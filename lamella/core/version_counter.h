// Version counters: how often the memory of a tensor was written. Internal.
//
// Note [Who counts writes]
//   Writes are counted in the storage, so that every alias sees them. Some tensors share memory but
//   have a count of their own: `x.data`, and a tensor that was given the memory of another one
//   (`x.data = y`, set_), whose count continues from its former value. Such a tensor owns a
//   counter, identified by a number that its views copy; its detached aliases own it jointly. The
//   storage counts these writes in `writes_apart`: Note [What is kept with a storage].
#pragma once
#include "lamella/core/tensor_impl.h"

namespace lamella {

namespace detail {
// A counter that stands at `version`, with one reference; never 0.
uint32_t make_version_counter(uint32_t version);
void retain_version_counter(uint32_t counter);
void release_version_counter(uint32_t counter) noexcept;
LAMELLA_PRIVATE_API uint32_t* version_counter(uint32_t counter);
// bump_version() for a tensor with a counter of its own.
LAMELLA_PRIVATE_API void bump_apart(TensorImpl* tensor);
}  // namespace detail

// The tensor must not be batched.
LAMELLA_ALWAYS_INLINE uint32_t version_of(const lamella_tensor* tensor) {
  const auto* t = static_cast<const TensorImpl*>(tensor);
  if (LAMELLA_UNLIKELY(t->version_counter != 0)) {
    return __atomic_load_n(detail::version_counter(t->version_counter), __ATOMIC_RELAXED);
  }
  return t->storage != nullptr ? __atomic_load_n(&t->storage->version, __ATOMIC_RELAXED) : 0;
}
// Two writers at once are a race in the data already, so this needs no locked operation.
LAMELLA_ALWAYS_INLINE void bump_version(lamella_tensor* tensor) {
  auto* t = static_cast<TensorImpl*>(tensor);
  if (LAMELLA_UNLIKELY(t->version_counter != 0)) return detail::bump_apart(t);
  if (t->storage == nullptr) return;
  uint32_t* version = &t->storage->version;
  __atomic_store_n(version, __atomic_load_n(version, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}
// Gives the tensor a counter of its own that stands at `version`.
LAMELLA_PRIVATE_API void count_apart(TensorImpl* tensor, uint32_t version);

}  // namespace lamella
