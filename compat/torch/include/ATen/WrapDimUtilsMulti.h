// at::dim_list_to_bitset.
#pragma once
#include <ATen/WrapDimUtils.h>

#include <bitset>

namespace at {
constexpr size_t dim_bitset_size = 64;
// The listed dimensions as a bit set; all dimensions without a list. Throws for a dimension that is
// listed twice.
inline std::bitset<dim_bitset_size> dim_list_to_bitset(OptionalIntArrayRef dims, size_t ndims) {
  LAMELLA_CHECK(ndims <= dim_bitset_size, "dim_list_to_bitset: expected at most ", dim_bitset_size,
                " dimensions, got ", ndims);
  std::bitset<dim_bitset_size> seen;
  if (!dims.has_value()) {
    for (size_t d = 0; d < ndims; ++d) seen.set(d);
    return seen;
  }
  for (int64_t given : *dims) {
    auto d = static_cast<size_t>(c10::maybe_wrap_dim(given, static_cast<int64_t>(ndims)));
    LAMELLA_CHECK(!seen[d], "dim_list_to_bitset: expected each dimension once, got ", *dims);
    seen.set(d);
  }
  return seen;
}
}  // namespace at
