// TensorAccessor: element access by index without going through the dispatcher, on the CPU.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/core/tensor_base.h"

namespace lamella {

// The fields of an accessor. It borrows the tensor's memory, sizes and strides, so it must not
// outlive the tensor.
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessorBase {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  TensorAccessorBase(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  ArrayRef<Index> sizes() const { return {sizes_, N}; }
  ArrayRef<Index> strides() const { return {strides_, N}; }
  Index size(size_t d) const { return sizes_[d]; }
  Index stride(size_t d) const { return strides_[d]; }
  PtrType data() const { return data_; }

 protected:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

// With one dimension left, operator[] returns an element.
template <class T, size_t N, template <class> class PtrTraits, class Index>
class TensorAccessor : public TensorAccessorBase<T, N, PtrTraits, Index> {
 public:
  using TensorAccessorBase<T, N, PtrTraits, Index>::TensorAccessorBase;
  decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) {
      return (this->data_[i * this->strides_[0]]);
    } else {
      return TensorAccessor<T, N - 1, PtrTraits, Index>(this->data_ + i * this->strides_[0],
                                                        this->sizes_ + 1, this->strides_ + 1);
    }
  }
};

template <class T, size_t N>
TensorAccessor<T, N> TensorBase::accessor() const {
  static_assert(N > 0, "a tensor without dimensions has data_ptr<T>()");
  LAMELLA_CHECK(dim() == static_cast<int64_t>(N), "accessor: expected ", N, " dimensions, got ",
                dim());
  LAMELLA_CHECK(is_cpu(), "accessor: expected a tensor on cpu, got ", device());
  T* data = typed<T>("accessor");
  if constexpr (!std::is_const_v<T>) exposed(impl());
  return {data, impl()->sizes, impl()->strides};
}

}  // namespace lamella
