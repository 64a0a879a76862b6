// PackedTensorAccessor: an accessor with sizes and strides of its own, for code that copies it
// somewhere or counts with 32 bits.
#pragma once
#include <limits>

#include "lamella/core/accessor.h"

namespace lamella {

template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class Index = int64_t>
class PackedTensorAccessor {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  // Throws where a size or a stride does not fit.
  explicit PackedTensorAccessor(const TensorAccessor<T, N>& from) : data_(from.data()) {
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = narrow(from.size(d));
      strides_[d] = narrow(from.stride(d));
    }
  }
  decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, PtrTraits, Index>(data_, sizes_, strides_)[i];
  }
  Index size(size_t d) const { return sizes_[d]; }
  Index stride(size_t d) const { return strides_[d]; }
  PtrType data() const { return data_; }

 private:
  static Index narrow(int64_t number) {
    LAMELLA_CHECK(number <= std::numeric_limits<Index>::max(),
                  "packed_accessor: expected sizes and strides of at most ",
                  std::numeric_limits<Index>::max(), ", got ", number);
    return static_cast<Index>(number);
  }

  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};

}  // namespace lamella
