// Overlap of operands in memory.
#include "lamella/kernels/tensor_overlap.h"

namespace lamella::native {

MemoryOverlap memory_overlap(const TensorBase& a, const TensorBase& b) {
  if (a.is_same(b)) return MemoryOverlap::kFull;
  if (a.numel() == 0 || b.numel() == 0) return MemoryOverlap::kNo;
  if (!a.is_alias_of(b)) return MemoryOverlap::kNo;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) {
    return MemoryOverlap::kTooHard;
  }
  auto* a_begin = static_cast<const char*>(a.data_ptr());
  auto* b_begin = static_cast<const char*>(b.data_ptr());
  const char* a_end = a_begin + a.nbytes();
  const char* b_end = b_begin + b.nbytes();
  if (a_begin == b_begin && a_end == b_end) {
    return a.strides() == b.strides() ? MemoryOverlap::kFull : MemoryOverlap::kPartial;
  }
  return a_begin < b_end && b_begin < a_end ? MemoryOverlap::kPartial : MemoryOverlap::kNo;
}

void check_no_internal_overlap(const char* op, const char* name, const TensorBase& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return;
  IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  for (size_t d = 0; d < sizes.size(); ++d) {
    LAMELLA_CHECK(sizes[d] <= 1 || strides[d] != 0, op, ": expected '", name,
                  "' to have memory of its own for each element it writes, got one expanded to ",
                  sizes, "; clone it first");
  }
}

void check_no_partial_overlap(const char* op, const char* a_name, const TensorBase& a,
                              const char* b_name, const TensorBase& b) {
  LAMELLA_CHECK(memory_overlap(a, b) != MemoryOverlap::kPartial, op, ": expected '", a_name,
                "' not to share part of its memory with '", b_name, "'; clone one of them first");
}

}  // namespace lamella::native
