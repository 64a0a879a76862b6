// Copies between strided memory on the CPU.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/core/scalar_type.h"

namespace lamella::native {

// dst[...] = src[...]. Any strides and dtypes; shapes are equal. Both on the CPU.
struct StridedArray {
  void* data;
  const int64_t* strides;  // in elements
  ScalarType dtype;
};
void copy_strided(const int64_t* sizes, int64_t ndim, const StridedArray& dst,
                  const StridedArray& src);

}  // namespace lamella::native
