// at::cuda::detail::TensorInfo: a tensor's data, sizes and strides as a kernel's argument.
#pragma once
#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>

#include <cstdint>

namespace at::cuda::detail {

#define MAX_TENSORINFO_DIMS 25

template <class T, class IndexType>
struct TensorInfo {
  TensorInfo() = default;
  TensorInfo(T* data, int dims, IndexType* sizes, IndexType* strides) : data(data), dims(dims) {
    TORCH_CHECK(dims <= MAX_TENSORINFO_DIMS, "TensorInfo: expected at most ", MAX_TENSORINFO_DIMS,
                " dimensions, got ", dims);
    for (int i = 0; i < dims; ++i) {
      this->sizes[i] = sizes[i];
      this->strides[i] = strides[i];
    }
  }
  // Takes one element of a dimension.
  void reduceDim(int dim) {
    TORCH_CHECK(dim >= 0 && dim < dims, "reduceDim: expected a dimension from 0 to ", dims - 1,
                ", got ", dim);
    sizes[dim] = 1;
  }
  // Joins neighbouring dimensions that are one in memory, but not across `exclude`, and drops those
  // of size 1. Returns where the excluded dimension is afterwards.
  int collapseDims(int exclude = -1) {
    int made = 0, kept = -1;
    for (int i = 0; i < dims; ++i) {
      if (i == exclude) {
        kept = made;
      } else if (sizes[i] == 1) {
        continue;
      } else if (made > 0 && made - 1 != kept && strides[made - 1] == sizes[i] * strides[i]) {
        sizes[made - 1] *= sizes[i];
        strides[made - 1] = strides[i];
        continue;
      }
      sizes[made] = sizes[i];
      strides[made++] = strides[i];
    }
    if (made == 0) {
      sizes[made] = strides[made] = 1;
      ++made;
    }
    dims = made;
    return kept;
  }
  C10_HOST_DEVICE bool isContiguous() const { return dims == 1 && strides[0] == 1; }

  T* data = nullptr;
  IndexType sizes[MAX_TENSORINFO_DIMS];
  IndexType strides[MAX_TENSORINFO_DIMS];
  int dims = 0;
};

// The offset of an element by its position in row-major order, for tensors of `Dims` dimensions;
// -1: of any number; -2: contiguous ones.
template <class T, class IndexType, int Dims>
struct IndexToOffset {
  C10_HOST_DEVICE static IndexType get(IndexType position, const TensorInfo<T, IndexType>& info) {
    if constexpr (Dims == -2) return position;
    IndexType offset = 0;
    for (int i = (Dims < 0 ? info.dims : Dims) - 1; i > 0; --i) {
      offset += position % info.sizes[i] * info.strides[i];
      position /= info.sizes[i];
    }
    return offset + position * info.strides[0];
  }
};

}  // namespace at::cuda::detail
