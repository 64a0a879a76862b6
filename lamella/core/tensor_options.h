// TensorOptions: options of a factory for the tensor to make. The factory chooses what is not set.
#pragma once
#include <cstdint>
#include <optional>

#include "lamella/core/device.h"
#include "lamella/core/layout.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/type_meta.h"

namespace lamella {
namespace detail {

// A parameter that takes a T, nothing, or a std::optional<T>; cheaper to compile than the latter.
template <class T>
struct Maybe {
  constexpr Maybe(T given) : value(given), has(true) {}     // NOLINT
  constexpr Maybe(std::nullopt_t) : value(), has(false) {}  // NOLINT
  constexpr Maybe(TypeMeta given)                           // NOLINT
    requires std::is_same_v<T, ScalarType>
      : value(given), has(true) {}
  template <class U>
  constexpr Maybe(const std::optional<U>& given)  // NOLINT
      : value(given.has_value() ? T(*given) : T()), has(given.has_value()) {}
  T value;
  bool has;
};
template <>
struct Maybe<Device> {
  constexpr Maybe(Device given) : value(given), has(true) {}               // NOLINT
  constexpr Maybe(std::nullopt_t) : value(DeviceType::CPU), has(false) {}  // NOLINT
  template <class U>
  constexpr Maybe(const std::optional<U>& given)  // NOLINT
      : value(given.has_value() ? Device(*given) : Device(DeviceType::CPU)),
        has(given.has_value()) {}
  Device value;
  bool has;
};

}  // namespace detail

class TensorOptions {
 public:
  constexpr TensorOptions() = default;
  constexpr TensorOptions(ScalarType dtype) : dtype_(dtype), set_(kDtype) {}  // NOLINT: implicit
  constexpr TensorOptions(TypeMeta dtype) : TensorOptions(dtype.toScalarType()) {}  // NOLINT
  // A device, or what makes one, such as its name. Not for a list in braces, which is for the
  // constructor below.
  template <class D>
    requires requires(const D& d) { Device(d); }
  constexpr TensorOptions(const D& device) : device_(device), set_(kDevice) {}  // NOLINT
  constexpr TensorOptions(DeviceType type) : TensorOptions(Device(type)) {}     // NOLINT
  constexpr TensorOptions(DeviceType type, DeviceIndex index)
      : TensorOptions(Device(type, index)) {}
  constexpr TensorOptions(Layout layout) : layout_(layout), set_(kLayout) {}  // NOLINT
  constexpr TensorOptions(MemoryFormat format)                                // NOLINT
      : memory_format_(format), set_(kMemoryFormat) {}

  // Each returns a copy with one option set, or unset if given nullopt.
  [[nodiscard]] constexpr TensorOptions dtype(detail::Maybe<ScalarType> given) const {
    return with(&TensorOptions::dtype_, kDtype, given.has ? given.value : ScalarType::Float,
                given.has);
  }
  template <class T>
  [[nodiscard]] constexpr TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  [[nodiscard]] constexpr TensorOptions device(detail::Maybe<Device> given) const {
    return with(&TensorOptions::device_, kDevice, given.value, given.has);
  }
  [[nodiscard]] constexpr TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  [[nodiscard]] TensorOptions device(const char* text) const { return device(Device(text)); }
  [[nodiscard]] constexpr TensorOptions device_index(DeviceIndex index) const {
    return device(Device(DeviceType::CUDA, index));
  }
  [[nodiscard]] constexpr TensorOptions layout(detail::Maybe<Layout> given) const {
    return with(&TensorOptions::layout_, kLayout, given.value, given.has);
  }
  [[nodiscard]] constexpr TensorOptions requires_grad(detail::Maybe<bool> given) const {
    return with(&TensorOptions::requires_grad_, kRequiresGrad, given.value, given.has);
  }
  [[nodiscard]] constexpr TensorOptions pinned_memory(detail::Maybe<bool> given) const {
    return with(&TensorOptions::pinned_memory_, kPinnedMemory, given.value, given.has);
  }
  [[nodiscard]] constexpr TensorOptions memory_format(detail::Maybe<MemoryFormat> given) const {
    return with(&TensorOptions::memory_format_, kMemoryFormat, given.value, given.has);
  }

  // The option if set, or PyTorch's default.
  constexpr TypeMeta dtype() const { return TypeMeta(dtype_); }
  constexpr Device device() const { return device_; }
  constexpr Layout layout() const { return layout_; }
  constexpr bool requires_grad() const { return requires_grad_; }
  constexpr bool pinned_memory() const { return pinned_memory_; }

  constexpr bool has_dtype() const { return (set_ & kDtype) != 0; }
  constexpr bool has_device() const { return (set_ & kDevice) != 0; }
  constexpr bool has_layout() const { return (set_ & kLayout) != 0; }
  constexpr bool has_requires_grad() const { return (set_ & kRequiresGrad) != 0; }
  constexpr bool has_pinned_memory() const { return (set_ & kPinnedMemory) != 0; }
  constexpr bool has_memory_format() const { return (set_ & kMemoryFormat) != 0; }

  // Templates only so that a file instantiates no std::optional that it does not use.
  template <class T = ScalarType>
  constexpr std::optional<T> dtype_opt() const {
    return optional(dtype_, has_dtype());
  }
  template <class T = Device>
  constexpr std::optional<T> device_opt() const {
    return optional(device_, has_device());
  }
  template <class T = Layout>
  constexpr std::optional<T> layout_opt() const {
    return optional(layout_, has_layout());
  }
  template <class T = bool>
  constexpr std::optional<T> requires_grad_opt() const {
    return optional(requires_grad_, has_requires_grad());
  }
  template <class T = bool>
  constexpr std::optional<T> pinned_memory_opt() const {
    return optional(pinned_memory_, has_pinned_memory());
  }
  template <class T = MemoryFormat>
  constexpr std::optional<T> memory_format_opt() const {
    return optional(memory_format_, has_memory_format());
  }

  // These options, overridden by those that are set in `other`.
  [[nodiscard]] constexpr TensorOptions merge_in(const TensorOptions& other) const {
    TensorOptions o = *this;
    if (other.has_dtype()) o.dtype_ = other.dtype_;
    if (other.has_device()) o.device_ = other.device_;
    if (other.has_layout()) o.layout_ = other.layout_;
    if (other.has_requires_grad()) o.requires_grad_ = other.requires_grad_;
    if (other.has_pinned_memory()) o.pinned_memory_ = other.pinned_memory_;
    if (other.has_memory_format()) o.memory_format_ = other.memory_format_;
    o.set_ = static_cast<uint8_t>(o.set_ | other.set_);
    return o;
  }
  [[nodiscard]] constexpr TensorOptions merge_memory_format(
      detail::Maybe<MemoryFormat> format) const {
    return format.has ? memory_format(format) : *this;
  }
  constexpr bool operator==(const TensorOptions&) const = default;

 private:
  enum Set : uint8_t {
    kDtype = 1,
    kDevice = 2,
    kLayout = 4,
    kRequiresGrad = 8,
    kPinnedMemory = 16,
    kMemoryFormat = 32
  };
  template <class T>
  constexpr TensorOptions with(T TensorOptions::*field, Set bit, T value, bool has) const {
    TensorOptions o = *this;
    o.*field = value;
    o.set_ = static_cast<uint8_t>(has ? o.set_ | bit : o.set_ & ~bit);
    return o;
  }
  template <class T>
  static constexpr std::optional<T> optional(T value, bool has) {
    return has ? std::optional<T>(value) : std::nullopt;
  }

  // A field that is not set holds its default.
  ScalarType dtype_ = ScalarType::Float;
  Device device_ = DeviceType::CPU;
  Layout layout_ = Layout::Strided;
  MemoryFormat memory_format_ = MemoryFormat::Contiguous;
  bool requires_grad_ = false;
  bool pinned_memory_ = false;
  uint8_t set_ = 0;
};
static_assert(sizeof(TensorOptions) == 8);

inline constexpr TensorOptions dtype(ScalarType value) { return TensorOptions().dtype(value); }
template <class T>
inline constexpr TensorOptions dtype() {
  return dtype(CppTypeToScalarType<T>::value);
}
inline constexpr TensorOptions device(Device value) { return TensorOptions().device(value); }
inline constexpr TensorOptions device_index(DeviceIndex index) {
  return TensorOptions().device_index(index);
}
inline constexpr TensorOptions layout(Layout value) { return TensorOptions().layout(value); }
inline constexpr TensorOptions requires_grad(bool value = true) {
  return TensorOptions().requires_grad(value);
}
inline constexpr TensorOptions pinned_memory(bool value = true) {
  return TensorOptions().pinned_memory(value);
}
inline constexpr TensorOptions memory_format(MemoryFormat value) {
  return TensorOptions().memory_format(value);
}

}  // namespace lamella
