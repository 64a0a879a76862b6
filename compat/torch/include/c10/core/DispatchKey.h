// c10::DispatchKey.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/dispatch/dispatch_key.h"

#include "lamella/core/text_stream.h"

// Declared in the type's namespace, so that argument-dependent lookup finds it.
namespace lamella {
// The autograd key of a backend, and the backend of a key that is split by backend.
constexpr DispatchKey getAutogradKeyFromBackend(BackendComponent backend) {
  return (DispatchKeySet(DispatchKey::AutogradFunctionality) | DispatchKeySet(backend))
      .highestPriorityTypeId();
}
constexpr BackendComponent toBackendComponent(DispatchKey key) {
  const uint64_t bits = DispatchKeySet(key).raw_repr() & detail::kBackendMask;
  return static_cast<BackendComponent>(63 - __builtin_clzll(bits | 1));
}
LAMELLA_HIDDEN inline constexpr DispatchKey kAutograd = DispatchKey::Autograd;

template <detail::TextStream Stream>
Stream& operator<<(Stream& out, DispatchKey key) {
  return detail::stream(out, toString(key));
}
}  // namespace lamella
