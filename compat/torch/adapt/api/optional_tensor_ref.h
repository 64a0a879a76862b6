// OptionalTensorRef: a borrowed tensor, or none.
#pragma once
#include "lamella/api/tensor.h"

namespace lamella {

// Must not outlive the tensor that it was made from. TensorBase and Tensor have the same
// representation, so a reference to one can be read as the other.
class OptionalTensorRef {
 public:
  OptionalTensorRef() = default;
  OptionalTensorRef(const TensorBase& tensor) : tensor_(&tensor) {}  // NOLINT: as in PyTorch
  bool has_value() const { return tensor_ != nullptr && tensor_->defined(); }
  explicit operator bool() const { return has_value(); }
  // Throws if there is none.
  const Tensor& operator*() const& {
    LAMELLA_CHECK(tensor_ != nullptr, "OptionalTensorRef: expected a tensor, got None");
    return *static_cast<const Tensor*>(tensor_);
  }
  const Tensor* operator->() const { return &**this; }
  const Tensor& getTensorRef() const { return **this; }

 private:
  const TensorBase* tensor_ = nullptr;
};

}  // namespace lamella
