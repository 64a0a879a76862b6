// Whether tensors share memory in a way that would make results depend on the order of writes.
#pragma once
#include "lamella/core/tensor_base.h"

namespace lamella {

enum class MemoryOverlap : uint8_t { kNo, kFull, kPartial, kTooHard };

namespace detail {

// The bytes from the first to past the last element; empty for tensors without memory.
struct ByteRange {
  const char* begin = nullptr;
  const char* end = nullptr;

  explicit ByteRange(const TensorBase& tensor) {
    auto* data = static_cast<const char*>(tensor.data_ptr());
    if (data == nullptr || tensor.numel() == 0) return;
    if (tensor.is_non_overlapping_and_dense()) {
      begin = data;
      end = data + tensor.nbytes();
      return;
    }
    int64_t first = 0, last = 0;
    IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
    for (size_t d = 0; d < sizes.size(); ++d) {
      (strides[d] < 0 ? first : last) += (sizes[d] - 1) * strides[d];
    }
    begin = data + first * tensor.element_size();
    end = data + (last + 1) * tensor.element_size();
  }
  bool meets(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

}  // namespace detail

// False only if no element of one lies in memory of the other.
inline bool may_share_memory(const TensorBase& a, const TensorBase& b) {
  return a.is_same(b) || detail::ByteRange(a).meets(detail::ByteRange(b));
}

// kFull: the same elements at the same places. kTooHard: not both are dense.
inline MemoryOverlap memory_overlap(const TensorBase& a, const TensorBase& b) {
  if (a.is_same(b)) return MemoryOverlap::kFull;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) {
    return may_share_memory(a, b) ? MemoryOverlap::kTooHard : MemoryOverlap::kNo;
  }
  detail::ByteRange x(a), y(b);
  if (!x.meets(y)) return MemoryOverlap::kNo;
  return x.begin == y.begin && x.end == y.end && a.strides() == b.strides()
             ? MemoryOverlap::kFull
             : MemoryOverlap::kPartial;
}

// Throws if elements of a tensor that is written share memory because of a stride of 0; other
// overlaps are not detected.
inline void check_no_internal_overlap(const char* op, const char* name, const TensorBase& tensor) {
  if (LAMELLA_LIKELY(tensor.is_non_overlapping_and_dense())) return;
  IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  for (size_t d = 0; d < sizes.size(); ++d) {
    LAMELLA_CHECK(sizes[d] <= 1 || strides[d] != 0, op, ": expected '", name,
                  "' to have memory of its own for each element it writes, got one expanded to ",
                  sizes, "; clone it first");
  }
}

// Throws if `a`, which is written, shares part of its memory with `b`, but not all of it.
inline void check_no_partial_overlap(const char* op, const char* a_name, const TensorBase& a,
                                     const char* b_name, const TensorBase& b) {
  LAMELLA_CHECK(memory_overlap(a, b) != MemoryOverlap::kPartial, op, ": expected '", a_name,
                "' not to share part of its memory with '", b_name, "'; clone one of them first");
}

// Throws if `a`, which is written, shares memory with `b`.
inline void check_no_overlap(const char* op, const char* a_name, const TensorBase& a,
                             const char* b_name, const TensorBase& b) {
  MemoryOverlap overlap = memory_overlap(a, b);
  LAMELLA_CHECK(overlap != MemoryOverlap::kFull && overlap != MemoryOverlap::kPartial, op,
                ": expected '", a_name, "' to share no memory with '", b_name,
                "'; clone one of them first");
}

}  // namespace lamella
