// at::toDLPack, at::fromDLPack: conversion of CPU tensors to and from DLPack, without a copy.
#pragma once
#include <ATen/Functions.h>
#include <ATen/dlpack.h>

#include "lamella/core/dlpack_types.h"

namespace at {
namespace detail {

// A DLPack structure that owns a tensor and copies of its sizes and strides.
template <class Managed>
struct DLPackHolder {
  Tensor tensor;
  std::vector<int64_t> sizes, strides;
  Managed managed = {};
};

}  // namespace detail

// Throws for a dtype without a DLPack code.
inline DLDataType getDLDataType(const Tensor& tensor) {
  if (const auto* row = lamella::dlpack::find_type(tensor.scalar_type())) {
    return lamella::dlpack::type_of(*row);
  }
  throw lamella::Error(
      lamella::str("toDLPack: expected a dtype that DLPack has, got ", tensor.scalar_type()));
}
inline ScalarType toScalarType(const DLDataType& type) {
  if (const auto* row = lamella::dlpack::find_type(type)) return row->type;
  throw lamella::Error(lamella::str("fromDLPack: expected a type that tensors have, got code ",
                                    int{type.code}, " of ", int{type.bits}, " bits and ",
                                    type.lanes, " lanes"));
}

namespace detail {
template <class Managed>
Managed* to_dlpack(const Tensor& source) {
  LAMELLA_CHECK(source.is_cpu(), "toDLPack: expected 'src' to be on cpu, got ", source.device());
  DLDataType type = getDLDataType(source);
  Tensor tensor = source.resolve_conj().resolve_neg();
  auto* holder =
      new DLPackHolder<Managed>{tensor, tensor.sizes().vec(), tensor.strides().vec(), {}};
  Managed& managed = holder->managed;
  managed.manager_ctx = holder;
  managed.deleter = [](Managed* self) {
    delete static_cast<DLPackHolder<Managed>*>(self->manager_ctx);
  };
  managed.dl_tensor = {holder->tensor.data_ptr(),
                       {kDLCPU, 0},
                       static_cast<int32_t>(source.dim()),
                       type,
                       holder->sizes.data(),
                       holder->strides.data(),
                       0};
  return &managed;
}
// Calls the deleter of the structure when no tensor uses the memory any more.
template <class Managed>
auto deleter_of(Managed* source) {
  return [source](void*) {
    if (source->deleter != nullptr) source->deleter(source);
  };
}
}  // namespace detail

// The structure keeps the tensor alive until its deleter runs.
inline DLManagedTensor* toDLPack(const Tensor& source) {
  return detail::to_dlpack<DLManagedTensor>(source);
}
inline DLManagedTensorVersioned* toDLPackVersioned(const Tensor& source) {
  DLManagedTensorVersioned* managed = detail::to_dlpack<DLManagedTensorVersioned>(source);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  return managed;
}

// A tensor over the structure's memory. `deleter` runs when no tensor uses the memory any more.
template <class Deleter>
Tensor fromDLPack(const DLTensor& source, Deleter deleter) {
  LAMELLA_CHECK(source.device.device_type == kDLCPU, "fromDLPack: expected memory of the CPU, got ",
                "device type ", static_cast<int>(source.device.device_type));
  ScalarType dtype = toScalarType(source.dtype);
  IntArrayRef sizes(source.shape, static_cast<size_t>(source.ndim));
  void* data = static_cast<char*>(source.data) + source.byte_offset;
  if (source.strides == nullptr) {
    return lamella::from_blob(data, sizes, std::move(deleter), TensorOptions(dtype));
  }
  IntArrayRef strides(source.strides, static_cast<size_t>(source.ndim));
  return lamella::from_blob(data, sizes, strides, std::move(deleter), TensorOptions(dtype));
}
inline Tensor fromDLPack(DLManagedTensor* source) {
  return fromDLPack(source->dl_tensor, detail::deleter_of(source));
}
inline Tensor fromDLPackVersioned(DLManagedTensorVersioned* source) {
  LAMELLA_CHECK(source->version.major <= DLPACK_MAJOR_VERSION,
                "fromDLPackVersioned: expected version ", DLPACK_MAJOR_VERSION, ", got ",
                source->version.major);
  return fromDLPack(source->dl_tensor, detail::deleter_of(source));
}

}  // namespace at
