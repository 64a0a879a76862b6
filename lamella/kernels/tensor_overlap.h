// Whether operands share memory in a way that would make results depend on the order of writes.
#pragma once
#include "lamella/core/tensor_base.h"

namespace lamella::native {

enum class MemoryOverlap : uint8_t { kNo, kFull, kPartial, kTooHard };

// kFull: the same elements at the same places. kTooHard: not both are dense.
MemoryOverlap memory_overlap(const TensorBase& a, const TensorBase& b);
// Throws unless every element of a tensor that is written has memory of its own, as far as strides
// of 0 tell.
void check_no_internal_overlap(const char* op, const char* name, const TensorBase& tensor);
// Throws if `a`, which is written, shares part of its memory with `b`.
void check_no_partial_overlap(const char* op, const char* a_name, const TensorBase& a,
                              const char* b_name, const TensorBase& b);

}  // namespace lamella::native
