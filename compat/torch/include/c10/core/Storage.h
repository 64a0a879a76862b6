// c10::Storage: the result of Tensor::storage(), or memory that tensors are to be made over.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

namespace c10 {
class Storage : public lamella::TensorMemory {
 public:
  using use_byte_size_t = StorageImpl::use_byte_size_t;
  Storage() = default;
  Storage(TensorMemory memory) : TensorMemory(std::move(memory)) {}  // NOLINT: implicit
  Storage(intrusive_ptr<StorageImpl> memory)                         // NOLINT: implicit
      : TensorMemory(lamella::bytes_of(std::move(memory))) {}
  // use_byte_size_t(), the size, the memory or none, its allocator, whether it can be resized.
  template <class... A>
  explicit Storage(use_byte_size_t tag, A&&... arguments)
      : Storage(make_intrusive<StorageImpl>(tag, std::forward<A>(arguments)...)) {}
  operator const lamella::TensorBase&() const { return tensor(); }  // NOLINT: implicit
};
}  // namespace c10
