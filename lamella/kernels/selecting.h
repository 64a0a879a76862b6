// Selecting one element of each line (kthvalue, median, nanmedian, mode), runs of equal elements,
// and membership.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/core/tensor_base.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// The signed type of an unsigned one's size, for kernels that only compare for equality or move
// elements; other types stay.
inline ScalarType signed_type(ScalarType dtype) {
  return dtype == kUInt16 ? kShort : dtype == kUInt32 ? kInt : dtype == kUInt64 ? kLong : dtype;
}

// A NaN is the median of a line that has one, unless they are left out. The mode is the last of the
// commonest elements, the smallest where several are as common.
enum class Selecting : uint8_t { kKth, kMedian, kNanMedian, kMode };

// Gives one element of each line of `self` along `dim`, and where it is; outputs have size 1 there.
// Among equal elements it is the one that a stable sort puts at that place. k counts from 0.
using select_fn = void (*)(const char* op, const Tensor& self, int64_t dim, Selecting what,
                           int64_t k, const Tensor& values, const Tensor& indices);
LAMELLA_DECLARE_DISPATCH(select_fn, select_stub);

// Receives the first element of each run of equal neighbours, where it starts, and for each element
// the run that it is in, stored at `order` of its position if that is given. Null: not wanted.
struct RunsOut {
  int64_t runs;
  void* values;
  int64_t* starts;
  int64_t* groups;
  const int64_t* order;
};
// `line` is contiguous. Returns the number of runs, and with `out` stores them. NaN equals nothing.
using runs_fn = int64_t (*)(const Tensor& line, const RunsOut* out);
LAMELLA_DECLARE_DISPATCH(runs_fn, runs_stub);

// Which of `values` are among `tests`, of which there are some: both contiguous, of one real dtype;
// NaN is nowhere. `found` is bool, of the shape of values.
using isin_fn = void (*)(const Tensor& values, const Tensor& tests, const Tensor& found);
LAMELLA_DECLARE_DISPATCH(isin_fn, isin_stub);

}  // namespace lamella::native
