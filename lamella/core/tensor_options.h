// TensorOptions: what a factory is told about the tensor to make. Whatever is not set is the
// factory's own choice.
#pragma once
#include <optional>
#include <string>

#include "lamella/core/device.h"
#include "lamella/core/layout.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/scalar_type.h"

namespace lamella {

class TensorOptions {
 public:
  constexpr TensorOptions() = default;
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}             // NOLINT: implicit as in PyTorch
  TensorOptions(Device device) : device_(device) {}              // NOLINT
  TensorOptions(DeviceType type) : device_(Device(type)) {}      // NOLINT
  TensorOptions(Layout layout) : layout_(layout) {}              // NOLINT
  TensorOptions(MemoryFormat format) : memory_format_(format) {}  // NOLINT

  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> value) const {
    return with([&](TensorOptions& o) { o.dtype_ = value; });
  }
  template <class T>
  [[nodiscard]] TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> value) const {
    return with([&](TensorOptions& o) { o.device_ = value; });
  }
  [[nodiscard]] TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  [[nodiscard]] TensorOptions device(const char* text) const { return device(Device(text)); }
  [[nodiscard]] TensorOptions device_index(DeviceIndex index) const {
    return device(Device(DeviceType::CUDA, index));
  }
  [[nodiscard]] TensorOptions layout(std::optional<Layout> value) const {
    return with([&](TensorOptions& o) { o.layout_ = value; });
  }
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> value) const {
    return with([&](TensorOptions& o) { o.requires_grad_ = value; });
  }
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> value) const {
    return with([&](TensorOptions& o) { o.pinned_memory_ = value; });
  }
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> value) const {
    return with([&](TensorOptions& o) { o.memory_format_ = value; });
  }

  // What is set, or PyTorch's defaults.
  ScalarType dtype() const { return dtype_.value_or(ScalarType::Float); }
  Device device() const { return device_.value_or(Device(DeviceType::CPU)); }
  Layout layout() const { return layout_.value_or(Layout::Strided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_memory_.value_or(false); }

  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool has_layout() const { return layout_.has_value(); }
  bool has_requires_grad() const { return requires_grad_.has_value(); }
  bool has_pinned_memory() const { return pinned_memory_.has_value(); }
  bool has_memory_format() const { return memory_format_.has_value(); }

  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<bool> requires_grad_opt() const { return requires_grad_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_memory_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }

  // These options, overlaid with what is set in `other`.
  [[nodiscard]] TensorOptions merge_in(const TensorOptions& other) const {
    return with([&](TensorOptions& o) {
      if (other.dtype_) o.dtype_ = other.dtype_;
      if (other.device_) o.device_ = other.device_;
      if (other.layout_) o.layout_ = other.layout_;
      if (other.requires_grad_) o.requires_grad_ = other.requires_grad_;
      if (other.pinned_memory_) o.pinned_memory_ = other.pinned_memory_;
      if (other.memory_format_) o.memory_format_ = other.memory_format_;
    });
  }
  [[nodiscard]] TensorOptions merge_memory_format(std::optional<MemoryFormat> format) const {
    return format ? memory_format(format) : *this;
  }
  bool operator==(const TensorOptions&) const = default;

 private:
  template <class F>
  TensorOptions with(F change) const {
    TensorOptions copy = *this;
    change(copy);
    return copy;
  }

  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_;
  std::optional<bool> pinned_memory_;
  std::optional<MemoryFormat> memory_format_;
};

inline TensorOptions dtype(ScalarType value) { return TensorOptions().dtype(value); }
template <class T>
inline TensorOptions dtype() {
  return dtype(CppTypeToScalarType<T>::value);
}
inline TensorOptions device(Device value) { return TensorOptions().device(value); }
inline TensorOptions device_index(DeviceIndex index) {
  return TensorOptions().device_index(index);
}
inline TensorOptions layout(Layout value) { return TensorOptions().layout(value); }
inline TensorOptions requires_grad(bool value = true) {
  return TensorOptions().requires_grad(value);
}
inline TensorOptions pinned_memory(bool value = true) {
  return TensorOptions().pinned_memory(value);
}
inline TensorOptions memory_format(MemoryFormat value) {
  return TensorOptions().memory_format(value);
}

}  // namespace lamella
