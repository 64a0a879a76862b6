// at::cuda::detail::getTensorInfo, canUse32BitIndexMath, maybeOverlappingIndices.
#pragma once
#include <ATen/core/TensorBase.h>
#include <ATen/cuda/detail/TensorInfo.cuh>

#include <algorithm>
#include <array>
#include <limits>

namespace at::cuda::detail {

// Whether two indices could be one element. False only where strides prove it.
inline bool maybeOverlappingIndices(const TensorBase& tensor) {
  std::array<std::pair<int64_t, int64_t>, MAX_TENSORINFO_DIMS> dims;  // strides and sizes
  size_t count = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) == 1) continue;
    if (tensor.stride(i) < 1 || count == dims.size()) return true;
    dims[count++] = {tensor.stride(i), tensor.size(i)};
  }
  std::sort(dims.begin(), dims.begin() + count);
  for (size_t i = 1; i < count; ++i) {
    if (dims[i].first < dims[i - 1].first * (dims[i - 1].second - 1) + 1) return true;
  }
  return false;
}

// Whether the number of elements and the largest offset are below a bound.
inline bool canUse32BitIndexMath(const TensorBase& tensor,
                                 int64_t most = std::numeric_limits<int32_t>::max()) {
  if (tensor.numel() == 0) return true;
  int64_t offset = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) offset += (tensor.size(i) - 1) * tensor.stride(i);
  return tensor.numel() < most && offset < most;
}

template <class scalar, class IndexType>
TensorInfo<scalar, IndexType> getTensorInfo(const TensorBase& tensor) {
  TORCH_CHECK(tensor.dim() <= MAX_TENSORINFO_DIMS, "getTensorInfo: expected at most ",
              MAX_TENSORINFO_DIMS, " dimensions, got ", tensor.dim());
  IndexType sizes[MAX_TENSORINFO_DIMS], strides[MAX_TENSORINFO_DIMS];
  const int dims = static_cast<int>(tensor.dim());
  for (int i = 0; i < dims; ++i) {
    sizes[i] = static_cast<IndexType>(tensor.size(i));
    strides[i] = static_cast<IndexType>(tensor.stride(i));
  }
  scalar* data = nullptr;
  if constexpr (std::is_const_v<scalar>) {
    data = tensor.const_data_ptr<std::remove_const_t<scalar>>();
  } else {
    data = tensor.data_ptr<scalar>();
  }
  return TensorInfo<scalar, IndexType>(data, dims, sizes, strides);
}

}  // namespace at::cuda::detail
