// torch::stable::Tensor.
#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/stable/device.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

using AtenTensorHandle = lamella_tensor*;

namespace torch::stable {
class Tensor : public lamella::Tensor {
 public:
  Tensor() = default;
  Tensor(lamella::Tensor tensor) : lamella::Tensor(std::move(tensor)) {}  // NOLINT: implicit
  explicit Tensor(lamella::TensorBase tensor) : lamella::Tensor(std::move(tensor)) {}
  // Takes ownership of the handle.
  explicit Tensor(AtenTensorHandle owned) : Tensor(lamella::TensorBase::adopt(owned)) {}
  AtenTensorHandle get() const { return impl(); }
  int32_t get_device_index() const { return get_device(); }
};
}  // namespace torch::stable
