// What a backend's library includes beside lamella.h: registration of devices, guards, streams,
// generators, and the fallback on the CPU.
#pragma once
#include "lamella/core/backend.h"
#include "lamella/core/device_interfaces.h"
#include "lamella/core/generator.h"
#include "lamella/core/stream.h"
#include "lamella/dispatch/cpu_fallback.h"

namespace lamella {

// The generator that operators on a device use when they are given none.
inline Generator default_device_generator(Device device) {
  lamella_object* generator = nullptr;
  detail::check(
      lamella_generator_default(static_cast<uint8_t>(device.type()), device.index(), &generator));
  return Generator::adopt(generator);
}

}  // namespace lamella
