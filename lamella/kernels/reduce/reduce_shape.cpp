// Dimensions and shapes of reductions.
#include "lamella/kernels/reduce/reduce_shape.h"

namespace lamella::native {

DimMask reduced_dims(const char* op, OptionalIntArrayRef dim, int64_t ndim, bool empty_is_all) {
  LAMELLA_CHECK(ndim <= 64, op, ": expected at most 64 dimensions, got ", ndim);
  DimMask mask;
  if (!dim.has_value() || (dim->empty() && empty_is_all)) {
    mask.set();
    return mask;
  }
  for (int64_t d : *dim) {
    auto at = static_cast<size_t>(maybe_wrap_dim(d, ndim, op));
    LAMELLA_CHECK(!mask[at], op, ": expected each dimension once in 'dim', got ", *dim);
    mask.set(at);
  }
  return mask;
}

ReducedShape reduced_shape(const TensorBase& self, DimMask mask, bool keepdim) {
  ReducedShape shape;
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    if (!mask[d]) {
      shape.sizes[shape.ndim++] = self.sizes()[d];
    } else if (keepdim) {
      shape.sizes[shape.ndim++] = 1;
    }
  }
  return shape;
}

void check_not_empty(const char* op, const TensorBase& self, DimMask mask) {
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    LAMELLA_CHECK_INDEX(!mask[d] || self.sizes()[d] != 0, op,
                        ": expected 'self' to have elements along dimension ", d, ", got shape ",
                        self.sizes());
  }
}

}  // namespace lamella::native
