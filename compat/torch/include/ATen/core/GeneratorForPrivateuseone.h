// at::GetGeneratorForPrivateuse1.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/backend.h"

namespace at {
inline Generator GetGeneratorForPrivateuse1(DeviceIndex index) {
  return lamella::default_device_generator(Device(DeviceType::PrivateUse1, index));
}
}  // namespace at
