// DeviceType and Device: where a tensor's memory is. Derived from
// lamella/abi/dispatch_keys.def.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "lamella/abi/backend.h"
#include "lamella/abi/dispatch_keys.def"
#include "lamella/core/error.h"

namespace lamella {

using DeviceIndex = int8_t;

enum class DeviceType : int8_t {
#define LAMELLA_ENUMERATOR(name, number, ...) name = number,
  LAMELLA_DEVICE_TYPES(LAMELLA_ENUMERATOR)
#undef LAMELLA_ENUMERATOR
      COMPILE_TIME_MAX_DEVICE_TYPES = 36  // PyTorch's name for their number
};
inline constexpr int kDeviceTypes = static_cast<int>(DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);
// kCPU, kCUDA, ...
#define LAMELLA_CONSTANT(name, ...) \
  LAMELLA_HIDDEN inline constexpr DeviceType k##name = DeviceType::name;
LAMELLA_DEVICE_TYPES(LAMELLA_CONSTANT)
#undef LAMELLA_CONSTANT

// "cpu", "cuda", ...; "CPU", "CUDA", ... with lower_case = false. A type that a backend has renamed
// has the backend's name.
inline constexpr const char* device_type_name(DeviceType type, bool lower_case = true) {
  if (type >= DeviceType::PrivateUse1) {
    return lamella_device_type_name(static_cast<uint8_t>(type), lower_case);
  }
  switch (type) {
#define LAMELLA_CASE(name, number, text, ...) \
  case DeviceType::name:                      \
    return lower_case ? text : #name;
    LAMELLA_DEVICE_TYPES(LAMELLA_CASE)
#undef LAMELLA_CASE
    case DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES:
      break;
  }
  return "unknown";
}
inline void append(std::string& out, DeviceType type) { append(out, device_type_name(type)); }

namespace detail {
LAMELLA_LAZY inline bool find_device_type(std::string_view text, DeviceType& type) {
#define LAMELLA_MATCH(name, number, spelled, ...) \
  if (text == spelled) {                          \
    type = DeviceType::name;                      \
    return true;                                  \
  }
  LAMELLA_DEVICE_TYPES(LAMELLA_MATCH)
#undef LAMELLA_MATCH
  int32_t named = lamella_device_type_from_name(text.data(), text.size());
  if (named >= 0) type = static_cast<DeviceType>(named);
  return named >= 0;
}
}  // namespace detail

// The predicates that devices and tensors have: X(name, Type).
#define LAMELLA_DEVICE_PREDICATES(X) \
  X(is_cpu, CPU)                     \
  X(is_cuda, CUDA)                   \
  X(is_hip, HIP)                     \
  X(is_xla, XLA)                     \
  X(is_xpu, XPU)                     \
  X(is_mps, MPS)                     \
  X(is_meta, Meta)                   \
  X(is_hpu, HPU)                     \
  X(is_ve, VE)                       \
  X(is_lazy, Lazy)                   \
  X(is_ipu, IPU)                     \
  X(is_mtia, MTIA)                   \
  X(is_vulkan, Vulkan)               \
  X(is_metal, Metal)                 \
  X(is_maia, MAIA)                   \
  X(is_privateuseone, PrivateUse1)

// A device type and an index; index -1 is the current device of the type.
struct Device final {
  using Type = DeviceType;

  constexpr Device(DeviceType type, DeviceIndex index = -1)  // NOLINT: as in PyTorch
      : type_(type), index_(index) {}
  // "cpu", "cuda", "cuda:1". Throws Error on anything else.
  LAMELLA_LAZY Device(std::string_view text) : Device(parse(text)) {}               // NOLINT
  LAMELLA_LAZY Device(const std::string& text) : Device(std::string_view(text)) {}  // NOLINT
  LAMELLA_LAZY Device(const char* text) : Device(std::string_view(text)) {}         // NOLINT

  constexpr DeviceType type() const { return type_; }
  constexpr DeviceIndex index() const { return index_; }
  constexpr bool has_index() const { return index_ != -1; }
  constexpr void set_index(DeviceIndex index) { index_ = index; }
#define LAMELLA_IS(name, Type) \
  constexpr bool name() const { return type_ == DeviceType::Type; }
  LAMELLA_DEVICE_PREDICATES(LAMELLA_IS)
#undef LAMELLA_IS
  constexpr bool operator==(const Device& other) const = default;
  LAMELLA_LAZY std::string str() const {
    std::string text;
    append(text, type_);
    if (has_index()) {
      append(text, ':');
      append(text, index_);
    }
    return text;
  }

 private:
  LAMELLA_LAZY static Device parse(std::string_view text) {
    size_t colon = text.find(':');
    DeviceType type = DeviceType::CPU;
    LAMELLA_CHECK(detail::find_device_type(text.substr(0, colon), type),
                  "Device: expected a device like 'cpu' or 'cuda:1', got '", text, "'");
    if (colon == std::string_view::npos) return Device(type);
    std::string_view digits = text.substr(colon + 1);
    int index = 0;
    bool good = !digits.empty() && digits.size() <= 3 && (digits.size() == 1 || digits[0] != '0');
    for (char c : digits) {
      good = good && c >= '0' && c <= '9';
      index = index * 10 + (c - '0');
    }
    LAMELLA_CHECK(good && index <= 127, "Device: expected an index from 0 to 127 after '",
                  text.substr(0, colon + 1), "', got '", digits, "'");
    return Device(type, static_cast<DeviceIndex>(index));
  }

  DeviceType type_;
  DeviceIndex index_;
};
static_assert(sizeof(Device) == 2);

LAMELLA_LAZY inline void append(std::string& out, const Device& device) {
  append(out, device.str());
}

}  // namespace lamella
