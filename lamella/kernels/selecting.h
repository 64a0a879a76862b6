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

// kMedian returns NaN for a line that contains one; kNanMedian ignores NaN. kMode finds the most
// common element, the smallest if there are several, at its last position.
enum class Selecting : uint8_t { kKth, kMedian, kNanMedian, kMode };

// Selects one element of each line of `self` along `dim`, and its position; outputs have size 1 in
// `dim`. Among equal elements it is the one that a stable sort puts there. k counts from 0.
using select_fn = void (*)(const char* op, const Tensor& self, int64_t dim, Selecting what,
                           int64_t k, const Tensor& values, const Tensor& indices);
LAMELLA_KERNEL(select_fn, select_on);

// Sorts a contiguous line of a real dtype in ascending order into `sorted`, of its dtype and size,
// with NaN last, without the elements' positions.
using sort_values_fn = void (*)(const Tensor& line, const Tensor& sorted);
LAMELLA_KERNEL(sort_values_fn, sort_values_on);

// Receives the first element of each run of equal neighbours, the start of each run, and for each
// element the index of its run, stored at `order` of its position if given. Null: not wanted.
struct RunsOut {
  int64_t runs;
  void* values;
  int64_t* starts;
  int64_t* groups;
  const int64_t* order;
};
// `line` is contiguous. Returns the number of runs, and with `out` stores them. NaN equals nothing.
using runs_fn = int64_t (*)(const Tensor& line, const RunsOut* out);
LAMELLA_KERNEL(runs_fn, runs_on);

// Sets found[i] if values[i] occurs in `tests`, which is not empty. Both are contiguous and of one
// real dtype; NaN is never found. `found` is bool, of the shape of `values`.
using isin_fn = void (*)(const Tensor& values, const Tensor& tests, const Tensor& found);
LAMELLA_KERNEL(isin_fn, isin_on);

}  // namespace lamella::native
