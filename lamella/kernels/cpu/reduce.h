// Reductions on the CPU: tables of loops, and the driver that walks dimensions.
//
// Note [How a reduction is walked]
//   Each output has an accumulator, and outputs that lie side by side are computed together as a
//   block. Where the reduced dimension is the innermost in memory, each line of it is folded into
//   one accumulator; otherwise rows are folded into a row of accumulators. After a few steps the
//   accumulators of the first level are passed on to those of the next one, so that the error of a
//   long sum grows with the steps of one level, not with the length.
//
// Note [The same bits for any number of threads]
//   The order of folds depends only on sizes, strides and dtypes. Many blocks are distributed among
//   threads as a whole; few long ones are cut into parts whose length depends on their sizes, and
//   the parts are merged in pairs in a fixed order. A single thread computes the same parts one
//   after another.
#pragma once
#include <bitset>

#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/tensor_iterator.h"

namespace lamella::native {

// The input of one call of a loop: `count` lines (or rows) of `n` elements, whose first elements
// are `stride` bytes apart. `position` counts the elements (or rows) of the reduced dimension
// before these.
struct ReduceInput {
  const void* data;
  int64_t n, count, stride, position;
  const void* params;
};
// The loops choose the layout of a block of accumulators; it takes n * acc_bytes bytes.
using FoldFn = void (*)(void* acc, const ReduceInput& in);
struct ReduceLoops {
  int64_t acc_bytes;
  void (*init)(void* acc, int64_t n);
  FoldFn along;   // line j into accumulator j, of in.count
  FoldFn across;  // element j of each row into accumulator j, of in.n
  // Merges other[j] into acc[j].
  void (*merge)(void* acc, const void* other, int64_t n);
  void (*finish)(const void* acc, void* out, int64_t n, const void* params);
  // Writes the elements at the places that `finish` gives; null for reductions without places.
  void (*finish_values)(const void* acc, void* values, int64_t n);
  ScalarType out;
  // For one-byte accumulators: the value that can no longer change, so the fold may stop; else -1.
  int8_t settled = -1;
};
// The same folds for elements that are stored in a type other than the one of the computation.
struct ReduceSource {
  ScalarType computes;
  FoldFn along, across;
};
struct ReduceTable {
  const char* name;
  ReduceLoops loops[kLoopTypes];
  ReduceSource sources[kConvertTypes];
};
using reduce_fn = const ReduceTable& (*)();
// The loops of the reduction `name`, which simd/reduce_*.cpp define.
template <KernelName name>
const ReduceTable& reduction() {
  return named_kernel<reduce_fn, name>(kCPU);
}

using DimMask = std::bitset<64>;

// out = the fold of `in` over the dimensions in `mask`, computed in `type`. `out` has the kept
// dimensions, or all with size 1 where reduced; any strides and dtype. Reductions that find a place
// reduce one dimension, and write the elements there to `values` if given, which has the shape of
// `out` and the dtype of `in`.
void reduce_tensor(const ReduceTable& table, ScalarType type, const TensorBase& in, DimMask mask,
                   const TensorBase& out, const void* params = nullptr,
                   const TensorBase& values = TensorBase());

}  // namespace lamella::native
