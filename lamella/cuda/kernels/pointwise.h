// Pointwise kernels, in C++ that nvcc compiles for a GPU and g++ for the stand-in of tests/cuda.
//
// Note [One kernel for a function and a type]
//   A kernel computes in one type. It reads operands of any dtype that promotes to it, contiguous,
//   strided or broadcast, and converts them itself; float16 and bfloat16 are computed as float. All
//   arithmetic is IEEE's without contraction, so results equal the CPU's bit for bit.
#pragma once
#include <cstdint>
#include <type_traits>

#include "lamella/core/half.h"
#include "lamella/cuda/kernels/device.h"

namespace lamella::cuda {

// Dtypes of operands; the types of kernels are kBool to kF64.
enum Kind : int32_t { kBool, kU8, kI8, kI16, kI32, kI64, kF32, kF64, kF16, kBF16 };
inline constexpr int kPointwiseDims = 12;

struct PointwiseOperand {
  uint64_t data;  // 0: the number of the operand
  Kind kind;
  int64_t strides[kPointwiseDims];  // in bytes, innermost first
};
struct PointwiseParameters {
  int64_t numel;
  int32_t ndim;
  int32_t dense;  // every operand with memory is one run
  int64_t sizes[kPointwiseDims];
  PointwiseOperand operands[4];
  alignas(16) char numbers[4][16];  // of operands
  alignas(16) char scalars[3][16];  // in the kernel's type
};

template <class T, class S>
LAMELLA_DEVICE T read_as(const char* from) {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const S*>(from) != 0;
  } else {
    return static_cast<T>(*reinterpret_cast<const S*>(from));
  }
}
// An element of any dtype as T. Operands never have a higher category than T.
template <class T>
LAMELLA_DEVICE T read(const char* from, Kind kind) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (kind) {
      case kF32:
        return read_as<T, float>(from);
      case kF64:
        return read_as<T, double>(from);
      case kF16:
        return static_cast<T>(Half::Format::decode(*reinterpret_cast<const uint16_t*>(from)));
      case kBF16:
        return static_cast<T>(BFloat16::Format::decode(*reinterpret_cast<const uint16_t*>(from)));
      default:
        break;
    }
  }
  switch (kind) {
    case kU8:
      return read_as<T, uint8_t>(from);
    case kI8:
      return read_as<T, int8_t>(from);
    case kI16:
      return read_as<T, int16_t>(from);
    case kI32:
      return read_as<T, int32_t>(from);
    case kI64:
      return read_as<T, int64_t>(from);
    default:
      return static_cast<T>(read_as<bool, uint8_t>(from));
  }
}
template <class T>
LAMELLA_DEVICE void write(char* to, Kind kind, T value) {
  if constexpr (std::is_same_v<T, float>) {
    if (kind == kF16 || kind == kBF16) {
      *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(
          kind == kF16 ? Half::Format::encode(value) : BFloat16::Format::encode(value));
      return;
    }
  }
  *reinterpret_cast<T*>(to) = value;
}

// The elements of one thread of `threads`: F(parameters)(a, b, c).
template <class F, class T, int N, class First = T>
LAMELLA_DEVICE void pointwise(const PointwiseParameters& p, int64_t thread, int64_t threads) {
  const F function(p);
  for (int64_t i = thread; i < p.numel; i += threads) {
    int64_t offsets[N + 1];
    if (p.dense != 0) {
      for (int k = 0; k <= N; ++k) offsets[k] = i * p.operands[k].strides[0];
    } else {
      for (int k = 0; k <= N; ++k) offsets[k] = 0;
      int64_t rest = i;
      for (int d = 0; d < p.ndim; ++d) {
        const int64_t next = rest / p.sizes[d], at = rest - next * p.sizes[d];
        for (int k = 0; k <= N; ++k) offsets[k] += at * p.operands[k].strides[d];
        rest = next;
      }
    }
    const char* from[N + 1];
    for (int k = 1; k <= N; ++k) {
      const uint64_t data = p.operands[k].data;
      from[k] = data != 0 ? memory_at(data) + offsets[k] : p.numbers[k];
    }
    char* to = const_cast<char*>(memory_at(p.operands[0].data)) + offsets[0];
    const First a = read<First>(from[1], p.operands[1].kind);
    auto result = [&] {
      if constexpr (N == 1) {
        return function(a);
      } else if constexpr (N == 2) {
        return function(a, read<T>(from[2], p.operands[2].kind));
      } else {
        return function(a, read<T>(from[2], p.operands[2].kind),
                        read<T>(from[3], p.operands[3].kind));
      }
    }();
    // What promotion made of it, such as the int of bool | bool, would be written too wide.
    static_assert(std::is_same_v<decltype(result), T> || std::is_same_v<decltype(result), bool>);
    write(to, p.operands[0].kind, result);
  }
}

}  // namespace lamella::cuda
