// Arithmetic sequences of numbers.
#pragma once
#include <cstdint>

#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// to[i] = first + step * (begin + i), for i in [0, n): in float64 for floating-point types, and
// modulo the type's size for integers, which use the low bits of first and step.
struct RangeStart {
  double first, step;
  uint64_t first_whole, step_whole;
};
using RangeFn = void (*)(void* to, int64_t begin, int64_t n, const RangeStart& start);

// The function for a real dtype other than bool.
using range_fn = RangeFn (*)(ScalarType dtype);
LAMELLA_KERNEL(range_fn, range_on);

}  // namespace lamella::native
