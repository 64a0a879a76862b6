// Products of sizes, which PyTorch declares next to its TensorImpl. Lamella's tensors have another
// implementation.
#pragma once
#include <ATen/core/TensorBase.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/DimVector.h>
#include <c10/util/accumulate.h>

namespace c10 {
// The product of the sizes before dimension k, from k on, and between two dimensions.
inline int64_t size_between_dim_(int k, int l, IntArrayRef dims) {
  LAMELLA_CHECK(0 <= k && 0 <= l && static_cast<size_t>(k) < dims.size() &&
                    static_cast<size_t>(l) < dims.size(),
                "size_between_dim_: expected dimensions of ", dims, ", got ", k, " and ", l);
  const int first = std::min(k, l) + 1, last = std::max(k, l);
  return first < last ? multiply_integers(dims.begin() + first, dims.begin() + last) : 1;
}
inline int64_t size_to_dim_(int k, IntArrayRef dims) {
  LAMELLA_CHECK(k >= 0 && static_cast<size_t>(k) <= dims.size(),
                "size_to_dim_: expected 'k' to be from 0 to ", dims.size(), ", got ", k);
  return multiply_integers(dims.slice(0, static_cast<size_t>(k)));
}
inline int64_t size_from_dim_(int k, IntArrayRef dims) {
  LAMELLA_CHECK(k >= 0 && static_cast<size_t>(k) <= dims.size(),
                "size_from_dim_: expected 'k' to be from 0 to ", dims.size(), ", got ", k);
  return multiply_integers(dims.slice(static_cast<size_t>(k)));
}
inline int canonical_axis_index_(int axis, int ndims) {
  LAMELLA_CHECK(-ndims <= axis && axis < ndims,
                "canonical_axis_index_: expected 'axis' to be from ", -ndims, " to ", ndims - 1,
                ", got ", axis);
  return axis < 0 ? axis + ndims : axis;
}
}  // namespace c10
