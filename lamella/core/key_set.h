// The dispatch keys that a new tensor has, as bits. Derived from device_types.def and the table of
// dispatch keys.
#pragma once
#include <cstdint>

#include "lamella/abi/abi.h"
#include "lamella/core/device.h"

namespace lamella {
namespace detail {

enum KeyBackend : int {
#define LAMELLA_BACKEND(name) kKeyBackend##name,
#include "lamella/abi/dispatch_keys.def"
};
enum KeyFunctionality : int {
#define LAMELLA_FUNCTIONALITY(name) kKeyFunctionality##name,
#define LAMELLA_SPLIT(name, prefix) kKeyFunctionality##name,
#define LAMELLA_SHARED(name, split) kKeyFunctionality##name,
#include "lamella/abi/dispatch_keys.def"
};
inline constexpr uint64_t key_bit(KeyBackend backend) { return uint64_t{1} << backend; }
inline constexpr uint64_t key_bit(KeyFunctionality functionality) {
  return uint64_t{1} << (LAMELLA_BACKEND_BITS + static_cast<int>(functionality));
}

}  // namespace detail

// The bit of the device's backend; 0 for a device without a backend of its own.
inline constexpr uint64_t backend_bit(DeviceType type) {
  switch (type) {
#define LAMELLA_DEVICE_TYPE(name, number, text) \
  case DeviceType::name:                        \
    return detail::key_bit(detail::kKeyBackend##name);
#include "lamella/core/device_types.def"
    default:
      return 0;
  }
}

// Set in addition on a tensor that requires gradients, or may later: Note [Views know their base]
// in tensor_impl.h.
inline constexpr uint64_t kRequiresGradBits =
    detail::key_bit(detail::kKeyFunctionalityAutogradRequired);
// Set in addition on a tensor with a forward-mode tangent.
inline constexpr uint64_t kTangentBits = detail::key_bit(detail::kKeyFunctionalityAutogradTangent);
// The keys that a tensor has for autograd; tensors made from it do not inherit them.
inline constexpr uint64_t kGradientBits = kRequiresGradBits | kTangentBits;

// A strided tensor's keys: its backend, and the autograd layers unless it is an inference tensor.
inline constexpr uint64_t default_key_set(DeviceType type, bool is_inference = false) {
  uint64_t keys = backend_bit(type);
  uint64_t autograd = detail::key_bit(detail::kKeyFunctionalityADInplaceOrView);
  if (keys != 0) {
    keys |= detail::key_bit(detail::kKeyFunctionalityDense);
    autograd |= detail::key_bit(detail::kKeyFunctionalityAutogradFunctionality);
  } else {
    if (type == DeviceType::Vulkan) keys = detail::key_bit(detail::kKeyFunctionalityVulkan);
    if (type == DeviceType::Metal) keys = detail::key_bit(detail::kKeyFunctionalityMetal);
    if (type == DeviceType::MKLDNN) keys = detail::key_bit(detail::kKeyFunctionalityMkldnnCPU);
    autograd |= detail::key_bit(detail::kKeyFunctionalityAutogradOther);
  }
  return is_inference ? keys : keys | autograd;
}

}  // namespace lamella
