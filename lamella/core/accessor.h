// TensorAccessor: element access by index without going through the dispatcher, on the CPU.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lamella/core/tensor_base.h"

namespace lamella {

// Borrows the tensor's memory, sizes and strides: it lives no longer than the tensor.
template <class T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  TensorAccessor<T, N - 1> operator[](int64_t i) const {
    return {data_ + i * strides_[0], sizes_ + 1, strides_ + 1};
  }
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }
  int64_t size(size_t d) const { return sizes_[d]; }
  int64_t stride(size_t d) const { return strides_[d]; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

template <class T>
class TensorAccessor<T, 1> {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  T& operator[](int64_t i) const { return data_[i * strides_[0]]; }
  IntArrayRef sizes() const { return {sizes_, 1}; }
  IntArrayRef strides() const { return {strides_, 1}; }
  int64_t size(size_t d) const { return sizes_[d]; }
  int64_t stride(size_t d) const { return strides_[d]; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
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
