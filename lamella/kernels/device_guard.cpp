// Device guards of generated kernels: the calls into the backend.
#include "lamella/kernels/device_guard.h"

#include "lamella/abi/backend.h"

namespace lamella {

void detail::DeviceGuard::enter(Device device) {
  auto type = static_cast<uint8_t>(device.type());
  if (device.index() < 0 || lamella_has_backend(type) == 0) return;
  DeviceIndex former = -1;
  check(lamella_device_exchange(type, device.index(), &former));
  if (former == device.index()) return;
  former_ = former;
  type_ = type;
}

void detail::DeviceGuard::leave() { lamella_device_exchange(type_, former_, nullptr); }

}  // namespace lamella
