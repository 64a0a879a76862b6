// at::TensorGeometry: the sizes and strides of a tensor without its memory.
#pragma once
#include <ATen/core/Tensor.h>

#include <numeric>

#include "lamella/core/wrap_dim.h"

namespace at {

class TensorGeometry {
 public:
  TensorGeometry() = default;
  explicit TensorGeometry(IntArrayRef sizes) : sizes_(sizes.vec()), strides_(sizes.size()) {
    lamella::contiguous_strides(sizes, strides_.data());
  }
  explicit TensorGeometry(const TensorBase& tensor)
      : sizes_(tensor.sizes().vec()),
        strides_(tensor.strides().vec()),
        storage_offset_(tensor.storage_offset()) {}
  TensorGeometry(std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t storage_offset)
      : sizes_(std::move(sizes)), strides_(std::move(strides)), storage_offset_(storage_offset) {}

  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t size(int64_t dim) const { return sizes_[wrap(dim, "size")]; }
  int64_t stride(int64_t dim) const { return strides_[wrap(dim, "stride")]; }
  IntArrayRef sizes() const { return sizes_; }
  IntArrayRef strides() const { return strides_; }
  int64_t storage_offset() const { return storage_offset_; }
  int64_t numel() const {
    return std::accumulate(sizes_.begin(), sizes_.end(), int64_t{1}, std::multiplies<>());
  }
  bool is_contiguous() const {
    if (numel() == 0) return true;
    int64_t expected = 1;
    for (size_t i = sizes_.size(); i-- > 0;) {
      if (sizes_[i] != 1 && strides_[i] != expected) return false;
      expected *= sizes_[i];
    }
    return true;
  }
  // The geometry with two dimensions exchanged.
  TensorGeometry transpose(int64_t dim0, int64_t dim1) const {
    size_t a = wrap(dim0, "transpose"), b = wrap(dim1, "transpose");
    TensorGeometry result = *this;
    std::swap(result.sizes_[a], result.sizes_[b]);
    std::swap(result.strides_[a], result.strides_[b]);
    return result;
  }

 private:
  size_t wrap(int64_t dim, const char* what) const {
    return static_cast<size_t>(lamella::maybe_wrap_dim(dim, this->dim(), what));
  }
  std::vector<int64_t> sizes_, strides_;
  int64_t storage_offset_ = 0;
};

inline bool geometry_is_contiguous(IntArrayRef sizes, IntArrayRef strides) {
  return TensorGeometry(sizes.vec(), strides.vec(), 0).is_contiguous();
}

}  // namespace at
