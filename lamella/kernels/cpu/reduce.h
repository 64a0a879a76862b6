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
//   What is folded in which order depends on sizes, strides and dtypes alone. Many blocks are
//   shared out among threads, each block as a whole; few long ones are cut into parts of a length
//   that depends on their sizes, and the parts are merged in pairs in a fixed order. One thread
//   does the same parts one after another.
#pragma once
#include <bitset>

#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/tensor_iterator.h"

namespace lamella::native {

// Elements as a loop meets them: `count` lines (or rows) of `n` elements, the first ones `stride`
// bytes apart. `position` counts the elements (or rows) of the reduced dimension before these.
struct ReduceInput {
  const void* data;
  int64_t n, count, stride, position;
  const void* params;
};
// How a block of accumulators is laid out is its loops' own affair; it takes n * acc_bytes.
using FoldFn = void (*)(void* acc, const ReduceInput& in);
struct ReduceLoops {
  int64_t acc_bytes;
  void (*init)(void* acc, int64_t n);
  FoldFn along;   // line j into accumulator j, of in.count
  FoldFn across;  // element j of each row into accumulator j, of in.n
  // acc[j] becomes what both have seen.
  void (*merge)(void* acc, const void* other, int64_t n);
  void (*finish)(const void* acc, void* out, int64_t n, const void* params);
  // The elements at the places that `finish` gives; null for other reductions.
  void (*finish_values)(const void* acc, void* values, int64_t n);
  ScalarType out;
  // The byte that an accumulator of one byte keeps once it has it, or -1.
  int8_t settled = -1;
};
// The same folds of elements that are stored as another type than the one they are computed in.
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
// The loops of the reduction `name`; simd/reduce_*.cpp say which there are.
template <StubName name>
const ReduceTable& reduction() {
  return named_stub<reduce_fn, name>(kCPU);
}

using DimMask = std::bitset<64>;

// out = the fold of `in` over the dimensions in `mask`, computed in `type`. `out` has the kept
// dimensions, or all with size 1 where reduced; any strides and dtype. Reductions that find a place
// write the elements there to `values` where that is given, of the shape of `out` and in's dtype;
// they reduce one dimension.
void reduce_tensor(const ReduceTable& table, ScalarType type, const TensorBase& in, DimMask mask,
                   const TensorBase& out, const void* params = nullptr,
                   const TensorBase& values = TensorBase());

}  // namespace lamella::native
