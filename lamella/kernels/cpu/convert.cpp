// Conversion and movement of runs of elements.
#include "lamella/kernels/cpu/convert.h"

#include <cstring>

#include "lamella/kernels/cpu/movement.h"

namespace lamella::native {

ConvertFn get_convert(ScalarType from, ScalarType to) {
  int f = loop_index(from), t = loop_index(to);
  LAMELLA_INTERNAL_ASSERT(f >= 0 && t >= 0);
  return conversions_on(kCPU)[static_cast<size_t>(f)][static_cast<size_t>(t)];
}

void move_elements(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n,
                   int64_t bytes) {
  if (src_stride == bytes && dst_stride == bytes) {
    std::memcpy(dst, src, static_cast<size_t>(n * bytes));
    return;
  }
  movement_on(kCPU, bytes)
      .plane({dst, {dst_stride, 0}}, {const_cast<char*>(src), {src_stride, 0}}, n, 1, false);
}

void fill_elements(const char* src, char* dst, int64_t n, int64_t bytes) {
  movement_on(kCPU, bytes).fill(dst, src, n);
}

}  // namespace lamella::native
