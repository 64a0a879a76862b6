// at::MemOverlap, at::MemOverlapStatus and the checks for tensors that share memory.
#pragma once
#include <ATen/core/TensorBase.h>

#include "lamella/core/memory_overlap.h"

namespace at {
enum class MemOverlap { No, Yes, TooHard };
enum class MemOverlapStatus { Full, Partial, No, TooHard };

inline MemOverlap has_internal_overlap(const TensorBase& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return MemOverlap::No;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1 && tensor.stride(d) == 0) return MemOverlap::Yes;
  }
  return MemOverlap::TooHard;
}
inline MemOverlapStatus get_overlap_status(const TensorBase& a, const TensorBase& b) {
  switch (lamella::memory_overlap(a, b)) {
    case lamella::MemoryOverlap::kNo:
      return MemOverlapStatus::No;
    case lamella::MemoryOverlap::kFull:
      return MemOverlapStatus::Full;
    case lamella::MemoryOverlap::kPartial:
      return MemOverlapStatus::Partial;
    default:
      return MemOverlapStatus::TooHard;
  }
}
inline void assert_no_internal_overlap(const TensorBase& tensor) {
  lamella::check_no_internal_overlap("assert_no_internal_overlap", "tensor", tensor);
}
inline void assert_no_partial_overlap(const TensorBase& a, const TensorBase& b) {
  lamella::check_no_partial_overlap("assert_no_partial_overlap", "a", a, "b", b);
}
inline void assert_no_overlap(const TensorBase& a, const TensorBase& b) {
  lamella::check_no_overlap("assert_no_overlap", "a", a, "b", b);
}
}  // namespace at
