// What the host passes to a pointwise kernel: Note [Vectors of a thread] in pointwise.h.
#pragma once
#include <cstdint>

namespace lamella::cuda {

// Dtypes of operands. The types of kernels are kBool, kI32, kI64, kU64, kF32, kF64, kC64 and kC128.
enum Kind : int32_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF32,
  kF64,
  kF16,
  kBF16,
  kU16,
  kU32,
  kU64,
  kC64,
  kC128
};
inline constexpr int kPointwiseDims = 12;
inline constexpr int kPointwiseScalars = 4;

// Whether kernels of a type read and write a kind by vectors.
constexpr bool natural(Kind type, Kind kind) {
  switch (type) {
    case kI32:
      return kind <= kI32 || kind == kU16;
    case kI64:
      return kind == kI64 || kind == kU32 || kind == kU64;
    case kF32:
      return kind == kF32 || kind == kF16 || kind == kBF16;
    default:
      return kind == type;
  }
}

struct PointwiseOperand {
  uint64_t data;  // 0: the number of the operand
  Kind kind;
  int32_t strides[kPointwiseDims];  // in bytes, innermost first
};
// x / size is (x + (x multiplier >> 32)) >> shift for 0 <= x < 2^31.
struct Divisor {
  uint32_t multiplier, shift;
};
struct PointwiseParameters {
  uint32_t numel;
  int32_t ndim;
  int32_t vectors;  // elements of a thread are neighbours, read by vectors
  int32_t small;    // 1: the common dtype is float16, 2: bfloat16
  uint32_t sizes[kPointwiseDims];
  Divisor divisors[kPointwiseDims];
  PointwiseOperand operands[4];
  alignas(16) char numbers[4][16];                  // of operands
  alignas(16) char scalars[kPointwiseScalars][16];  // in the kernel's type
};

}  // namespace lamella::cuda
