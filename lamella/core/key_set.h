// The bits of a key set, and the dispatch keys that a new tensor has. Derived from
// lamella/abi/dispatch_keys.def; see Note [Keys, backends and functionalities] there.
#pragma once
#include <cstdint>

#include "lamella/abi/abi.h"
#include "lamella/core/device.h"

namespace lamella {

// Backends, lowest priority first.
enum class BackendComponent : uint8_t {
#define LAMELLA_ENUMERATOR(name, ...) name##Bit,
  LAMELLA_BACKENDS(LAMELLA_ENUMERATOR)
#undef LAMELLA_ENUMERATOR
      Count,
  EndOfBackendKeys = Count - 1
};
static_assert(static_cast<int>(BackendComponent::Count) <= LAMELLA_BACKEND_BITS);

namespace detail {

// Functionality indices, in priority order.
enum class Functionality : uint8_t {
#define LAMELLA_FUNCTIONALITY(name, group) name,
#include "lamella/abi/dispatch_keys.def"
  Count
};
static_assert(static_cast<int>(Functionality::Count) <= LAMELLA_FUNCTIONALITY_BITS);
enum class KeyGroup : uint8_t { Layer, Backend, Data, Autograd, Autocast };

inline constexpr uint64_t kBackendMask = (uint64_t{1} << LAMELLA_BACKEND_BITS) - 1;
inline constexpr uint64_t functionality_bit(Functionality f) {
  return uint64_t{1} << (LAMELLA_BACKEND_BITS + static_cast<int>(f));
}
inline constexpr uint64_t functionality_bits(KeyGroup group) {
  uint64_t bits = 0;
#define LAMELLA_FUNCTIONALITY(name, of) \
  if (group == KeyGroup::of) bits |= functionality_bit(Functionality::name);
#include "lamella/abi/dispatch_keys.def"
  return bits;
}

}  // namespace detail

// The bit of the device's backend; 0 for a device without a backend of its own.
inline constexpr uint64_t backend_bit(DeviceType type) {
  switch (type) {
#define LAMELLA_CASE(name, ...) \
  case DeviceType::name:        \
    return uint64_t{1} << static_cast<int>(BackendComponent::name##Bit);
    LAMELLA_BACKENDS(LAMELLA_CASE)
#undef LAMELLA_CASE
    default:
      return 0;
  }
}
inline constexpr DeviceType device_type_of(BackendComponent backend) {
  constexpr DeviceType types[] = {
#define LAMELLA_ROW(name, ...) DeviceType::name,
      LAMELLA_BACKENDS(LAMELLA_ROW)
#undef LAMELLA_ROW
  };
  return types[static_cast<int>(backend)];
}

// Set in addition on a tensor that requires gradients, or may later: Note [Views know their base]
// in tensor_impl.h.
inline constexpr uint64_t kRequiresGradBits =
    detail::functionality_bit(detail::Functionality::AutogradRequired);
// Set in addition on a tensor with a forward-mode tangent.
inline constexpr uint64_t kTangentBits =
    detail::functionality_bit(detail::Functionality::AutogradTangent);
// The keys that a tensor has for autograd; tensors made from it do not inherit them.
inline constexpr uint64_t kGradientBits = kRequiresGradBits | kTangentBits;

// A strided tensor's keys: its backend, and the autograd layers unless it is an inference tensor.
inline constexpr uint64_t default_key_set(DeviceType type, bool is_inference = false) {
  using detail::Functionality;
  using detail::functionality_bit;
  uint64_t keys = backend_bit(type);
  uint64_t autograd = functionality_bit(Functionality::ADInplaceOrView);
  if (keys != 0) {
    keys |= functionality_bit(Functionality::Dense);
    autograd |= functionality_bit(Functionality::AutogradFunctionality);
  } else {
    if (type == DeviceType::Vulkan) keys = functionality_bit(Functionality::Vulkan);
    if (type == DeviceType::Metal) keys = functionality_bit(Functionality::Metal);
    if (type == DeviceType::MKLDNN) keys = functionality_bit(Functionality::MkldnnCPU);
    autograd |= functionality_bit(Functionality::AutogradOther);
  }
  return is_inference ? keys : keys | autograd;
}

}  // namespace lamella
