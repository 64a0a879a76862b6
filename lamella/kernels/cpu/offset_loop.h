// Gather and scatter loops under all indexing on the CPU: elements are read from or written to
// addresses given by indices.
#pragma once
#include <vector>

#include "lamella/core/scalar.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::native {

// Addresses in a tensor, one for each index: `scale` * index bytes after the loop's base, where a
// negative index has `size` added first. All are checked to lie inside the tensor.
struct Places {
  Tensor index;      // int64
  int64_t size = 0;  // 0: no index is negative
  int64_t scale = 1;
  int64_t reach = 0;  // about the bytes from the first addressable element to the last
};

// Places along dimension `dim` of `target`, in the shape of `index` (int64 or int32). Negative
// indices count from the end if `wrap`, and are errors otherwise. `written`: a tensor that is
// changed before the places are used. Throws IndexError, beginning with op, for an index out of
// range.
Places places_along(const char* op, const Tensor& target, int64_t dim, const Tensor& index,
                    bool wrap, const Tensor& written);
// The same over `size` elements that lie `scale` bytes apart.
Places places_of(const char* op, int64_t size, int64_t scale, const Tensor& index, bool wrap,
                 const Tensor& written);
// The sum of several Places of one shape.
Places sum_of(const std::vector<Places>& parts);

// Operands of loop: 0 result, 1 source base, 2 indices of places. result = *(source + place).
void gather_elements(const StridedLoop<3>& loop, size_t bytes, const Places& places);

enum class ScatterMode { kAssign, kAdd, kMultiply, kMaximum, kMinimum, kMean };
ScatterMode scatter_mode(const char* op, std::string_view reduce);

// Operands of loop: 0 target base, 1 values, 2 indices of places. *(target + place) = value, or
// combined with it; kMean adds. Values for one place are combined in the loop's order, whatever the
// number of threads.
void scatter_elements(const char* op, const StridedLoop<3>& loop, ScalarType dtype,
                      ScatterMode mode, const Places& places);

// Elements of `self` along `dim` in the order of a 1-d or 0-d `index`, written to `out`, whose
// shape fits.
void index_select_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& out, bool wrap);

}  // namespace lamella::native
