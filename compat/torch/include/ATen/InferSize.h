// at::infer_size: replaces a size of -1 in the shape of a view.
#pragma once
#include <ATen/ExpandUtils.h>

namespace at {
// Throws if the sizes do not match the number of elements.
template <class Sizes = std::vector<int64_t>>
Sizes infer_size(IntArrayRef shape, int64_t numel) {
  Sizes sizes(shape.begin(), shape.end());
  int64_t* unknown = nullptr;
  int64_t known = 1;
  for (int64_t& size : sizes) {
    LAMELLA_CHECK(size >= -1, "infer_size: expected sizes of at least -1, got ", shape);
    if (size == -1) {
      LAMELLA_CHECK(unknown == nullptr, "infer_size: expected one size of -1 at most, got ", shape);
      unknown = &size;
    } else {
      known *= size;
    }
  }
  LAMELLA_CHECK(unknown == nullptr ? known == numel : known != 0 && numel % known == 0,
                "infer_size: expected a shape for ", numel, " elements, got ", shape);
  if (unknown != nullptr) *unknown = numel / known;
  return sizes;
}
LAMELLA_LAZY DimVector infer_size_dv(IntArrayRef shape, int64_t numel) {
  return infer_size<DimVector>(shape, numel);
}
}  // namespace at
