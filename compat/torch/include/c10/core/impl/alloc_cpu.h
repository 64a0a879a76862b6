// c10::alloc_cpu, c10::free_cpu: aligned memory.
#pragma once
#include <c10/core/alignment.h>

#include <cstdlib>

#include "lamella/core/error.h"

namespace c10 {
// Null for 0 bytes. Throws if the allocation fails.
inline void* alloc_cpu(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* data = nullptr;
  LAMELLA_CHECK(::posix_memalign(&data, gAlignment, bytes) == 0, "alloc_cpu: expected ", bytes,
                " bytes of memory, got none");
  return data;
}
inline void free_cpu(void* data) { std::free(data); }
}  // namespace c10
