// Functions that write a tensor's header: sizes, strides, and the fields derived from them.
// Internal to the core.
#pragma once
#include <cstring>

#include "lamella/core/checked_size.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"

namespace lamella::detail::header {

constexpr uint32_t kShapeFlags = LAMELLA_TENSOR_CONTIGUOUS | LAMELLA_TENSOR_CHANNELS_LAST |
                                 LAMELLA_TENSOR_CHANNELS_LAST_3D | LAMELLA_TENSOR_DENSE |
                                 LAMELLA_TENSOR_LIKES_CHANNELS_LAST;

// Points sizes and strides at uninitialised room for `ndim` entries.
LAMELLA_COLD inline void make_room_on_heap(TensorImpl* t, int32_t ndim) {
  auto* block = static_cast<int64_t*>(cpu_allocate(TensorImpl::heap_bytes(ndim)));
  if (t->heap_dims != 0) cpu_free(t->mutable_sizes(), TensorImpl::heap_bytes(t->heap_dims));
  t->sizes = block;
  t->strides = block + ndim;
  t->heap_dims = static_cast<uint8_t>(ndim);
}
LAMELLA_ALWAYS_INLINE void make_room(TensorImpl* t, size_t ndim) {
  if (LAMELLA_UNLIKELY(ndim > TensorImpl::kInlineDims)) {
    LAMELLA_CHECK(ndim <= 64, "tensor: expected at most 64 dimensions, got ", ndim);
    if (t->heap_dims != ndim) {
      make_room_on_heap(t, static_cast<int32_t>(ndim));
    }
  } else if (LAMELLA_UNLIKELY(t->heap_dims != 0)) {
    cpu_free(t->mutable_sizes(), TensorImpl::heap_bytes(t->heap_dims));
    t->heap_dims = 0;
    t->sizes = t->inline_sizes;
    t->strides = t->inline_strides;
  }
  t->ndim = static_cast<int32_t>(ndim);
}

// The address of an element, computed in integers: a tensor without elements may have any offset,
// for which pointer arithmetic would be undefined.
LAMELLA_ALWAYS_INLINE char* element_address(void* first, int64_t offset, ScalarType dtype) {
  if (first == nullptr) return nullptr;
  auto bytes = static_cast<size_t>(offset) * element_size(dtype);
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(first) + bytes);
}
LAMELLA_ALWAYS_INLINE void point_at_data(TensorImpl* t) {
  t->data = element_address(t->storage != nullptr ? t->storage->data : nullptr, t->storage_offset,
                            static_cast<ScalarType>(t->scalar_type));
}

inline int64_t checked_bytes(int64_t elements, ScalarType dtype, IntArrayRef sizes,
                             const char* op) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(element_size(dtype)), &bytes)) {
    detail::throw_bad_sizes(sizes, op);
  }
  return bytes;
}

// The lists must not be the tensor's own.
LAMELLA_ALWAYS_INLINE void fill_fresh(TensorImpl* t, IntArrayRef sizes, IntArrayRef strides,
                                      int64_t offset) {
  LAMELLA_INTERNAL_ASSERT(sizes.size() == strides.size(), "sizes ", sizes, ", strides ", strides);
  size_t n = sizes.size();
  make_room(t, n);
  int64_t* to_sizes = t->mutable_sizes();
  int64_t* to_strides = t->mutable_strides();
  int64_t numel = 1;
  for (size_t d = 0; d < n; ++d) {
    to_sizes[d] = sizes[d];
    to_strides[d] = strides[d];
    numel *= sizes[d];
  }
  t->numel = numel;
  t->storage_offset = offset;
  t->flags = (t->flags & ~kShapeFlags) | shape_flags({to_sizes, n}, {to_strides, n}, numel);
}

// The lists may be the tensor's own.
inline void fill_strided(TensorImpl* t, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  LAMELLA_CHECK(sizes.size() <= 64 && strides.size() <= 64,
                "tensor: expected at most 64 dimensions, got ", sizes.size());
  int64_t copy[2 * 64];
  std::memcpy(copy, sizes.data(), sizes.size() * sizeof(int64_t));
  std::memcpy(copy + 64, strides.data(), strides.size() * sizeof(int64_t));
  fill_fresh(t, {copy, sizes.size()}, {copy + 64, strides.size()}, offset);
}

}  // namespace lamella::detail::header
