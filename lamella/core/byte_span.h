// ByteSpan: the part of its storage that a tensor's elements lie in. Internal.
#pragma once
#include <cstddef>

#include "lamella/abi/backend.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

// Bytes from the beginning of the storage; empty for a tensor without elements.
struct ByteSpan {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

inline ByteSpan byte_span(const lamella_tensor* t) {
  if (t->numel == 0) return {};
  int64_t last = t->storage_offset;
  for (int32_t d = 0; d < t->ndim; ++d) last += (t->sizes[d] - 1) * t->strides[d];
  size_t bytes = element_size(static_cast<ScalarType>(t->scalar_type));
  return {static_cast<size_t>(t->storage_offset) * bytes, static_cast<size_t>(last + 1) * bytes};
}

// Where the first element is.
inline lamella_place place_of(const lamella_tensor* t) {
  return {t->data, t->device_type, t->device_index};
}

}  // namespace lamella
