// How losses reduce their elements: the values of the argument `int reduction`.
#pragma once
#include "lamella/api/functions.h"

namespace lamella::native {

enum Reduction : int64_t { kReduceNone = 0, kReduceMean = 1, kReduceSum = 2 };

inline void check_reduction(const char* op, int64_t reduction) {
  LAMELLA_CHECK_VALUE(reduction >= kReduceNone && reduction <= kReduceSum, op,
                      ": expected 'reduction' to be 0 (none), 1 (mean) or 2 (sum), got ",
                      reduction);
}
// Applies the reduction by calling operators.
inline Tensor apply_reduction(const char* op, const Tensor& values, int64_t reduction) {
  check_reduction(op, reduction);
  if (reduction == kReduceMean) return values.mean();
  return reduction == kReduceSum ? values.sum() : values;
}

}  // namespace lamella::native
