// PackedTensorAccessor: an accessor that holds copies of the sizes and strides, for code that
// copies it to another device or indexes with 32 bits.
#pragma once
#include <limits>
#include <utility>

#include "lamella/core/accessor.h"

namespace lamella {

template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

// The fields of a packed accessor.
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class Index = int64_t>
class PackedTensorAccessorBase {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  // Throws where a size or a stride does not fit.
  template <class From>
  PackedTensorAccessorBase(PtrType data, const From* sizes, const From* strides) : data_(data) {
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = narrow(sizes[d]);
      strides_[d] = narrow(strides[d]);
    }
  }
  Index size(size_t d) const { return sizes_[d]; }
  Index stride(size_t d) const { return strides_[d]; }
  PtrType data() const { return data_; }

 protected:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];

 private:
  static Index narrow(int64_t number) {
    LAMELLA_CHECK(number <= std::numeric_limits<Index>::max(),
                  "packed_accessor: expected sizes and strides of at most ",
                  std::numeric_limits<Index>::max(), ", got ", number);
    return static_cast<Index>(number);
  }
};

template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class Index = int64_t>
class PackedTensorAccessor : public PackedTensorAccessorBase<T, N, PtrTraits, Index> {
 public:
  using PackedTensorAccessorBase<T, N, PtrTraits, Index>::PackedTensorAccessorBase;
  explicit PackedTensorAccessor(const TensorAccessor<T, N>& from)
      : PackedTensorAccessor(from.data(), from.sizes().data(), from.strides().data()) {}
  decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, PtrTraits, Index>(this->data_, this->sizes_, this->strides_)[i];
  }
  // The accessor with two dimensions exchanged. Throws for a dimension out of range.
  PackedTensorAccessor transpose(Index a, Index b) const {
    Index n = static_cast<Index>(N);
    LAMELLA_CHECK_INDEX(0 <= a && a < n && 0 <= b && b < n,
                        "packed_accessor: expected dimensions of 0 to ", n - 1, ", got ", a,
                        " and ", b);
    PackedTensorAccessor result = *this;
    std::swap(result.sizes_[a], result.sizes_[b]);
    std::swap(result.strides_[a], result.strides_[b]);
    return result;
  }
};

}  // namespace lamella
