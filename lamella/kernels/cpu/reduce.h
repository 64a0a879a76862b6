// Reductions on the CPU: tables of loops, and the driver that walks dimensions.
//
// Note [How a reduction is walked]
//   An accumulator for each output element. Where the reduced dimension is the innermost in memory,
//   runs of it are folded into one accumulator; otherwise rows are folded into a row of them. What
//   was folded is passed on to a second and third accumulator every 64 steps, so that the error of
//   a long sum grows with the steps of one level, not with the length. Large reductions are split
//   over threads, by outputs or by ranges whose accumulators are merged in order.
#pragma once
#include <bitset>

#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/tensor_iterator.h"

namespace lamella::native {

struct ReduceLoops {
  int64_t acc_bytes;
  void (*init)(void* acc, int64_t n);
  // Folds n elements into acc[0].
  void (*run)(void* acc, const void* data, int64_t n, const void* params);
  // Folds element j into acc[j].
  void (*rows)(void* acc, const void* data, int64_t n, const void* params);
  // acc[j] becomes what both have seen.
  void (*merge)(void* acc, const void* other, int64_t n);
  void (*finish)(const void* acc, void* out, int64_t n, const void* params);
  ScalarType out;
};
struct ReduceTable {
  const char* name;
  ReduceLoops loops[kLoopTypes];
};
using reduce_fn = const ReduceTable& (*)();
// The loops of the reduction `name`; simd/reduce.cpp says which there are.
template <StubName name>
const ReduceTable& reduction() {
  return named_stub<reduce_fn, name>(kCPU);
}

using DimMask = std::bitset<64>;

// out = the fold of `in` over the dimensions in `mask`, computed in `type`. `out` has the kept
// dimensions, or all with size 1 where reduced; any strides and dtype.
void reduce_tensor(const ReduceTable& table, ScalarType type, const TensorBase& in, DimMask mask,
                   const TensorBase& out, const void* params = nullptr);

// The place of the largest or smallest element along one dimension; the first of equals, and any
// NaN wins. `values` may be undefined.
struct ArgLoops {
  // Elements base, base + 1, ...
  void (*line)(const void* data, int64_t n, int64_t base, void* best, int64_t* index);
  // Element j of row `row`.
  void (*rows)(const void* data, int64_t n, int64_t row, void* best, int64_t* index);
};
struct ArgTable {
  const char* name;
  ArgLoops loops[kLoopTypes];
};
using arg_fn = const ArgTable& (*)();
template <StubName name>
const ArgTable& arg_reduction() {
  return named_stub<arg_fn, name>(kCPU);
}
void arg_reduce(const ArgTable& table, const TensorBase& in, int64_t dim, const TensorBase& values,
                const TensorBase& indices);

}  // namespace lamella::native
