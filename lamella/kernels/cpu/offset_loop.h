// The engine under all indexing on the CPU: elements are read from or written to places given as
// byte offsets, one per position.
#pragma once
#include "lamella/core/scalar.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::native {

// out[...] += offset of index `index[...]`, in bytes: negative indices count from the end of a
// dimension of `size` elements that lie `stride` elements apart. `index` is int64 or int32. `out`
// is a contiguous int64 array of the same number of elements, row-major. Throws IndexError,
// beginning with op, for an index out of range.
void add_offsets(const char* op, const Tensor& index, int64_t size, int64_t stride_bytes,
                 int64_t* out, bool wrap);

// Operands of loop: 0 result, 1 source base, 2 offsets. result = *(source + offset).
void gather_elements(const StridedLoop<3>& loop, size_t bytes);

enum class ScatterMode { kAssign, kAdd, kMultiply, kMaximum, kMinimum, kMean };
ScatterMode scatter_mode(const char* op, std::string_view reduce);

// Operands of loop: 0 target base, 1 values, 2 offsets. *(target + offset) = value, or combined
// with it; kMean adds. Elements come in the loop's order, on one thread.
void scatter_elements(const char* op, const StridedLoop<3>& loop, ScalarType dtype,
                      ScatterMode mode);

// A contiguous int64 copy of offsets made for one index tensor over dimension `dim` of `target`.
Tensor offsets_along(const char* op, const Tensor& target, int64_t dim, const Tensor& index,
                     bool wrap);

// Elements of `self` along `dim` in the order of a 1-d or 0-d `index`, written to `out`, whose
// shape fits.
void index_select_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& out, bool wrap);

}  // namespace lamella::native
