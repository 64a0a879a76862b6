// The kernels that a backend's library brings for a device type: one table, set when the library is
// loaded. Operators check their arguments and make their results as on the CPU, and call the table
// where they would compute. Internal.
#pragma once
#include "lamella/core/device.h"

namespace lamella::native {

struct DeviceLoops;  // pointwise loops: device_loops.h
struct DeviceLines;  // reductions, scans, norms, losses: device_lines.h
struct DeviceMath;   // products, convolutions, transforms, factorisations: device_math.h

// A part that is null runs on the CPU instead.
struct DeviceKernels {
  const DeviceLoops* loops = nullptr;
  const DeviceLines* lines = nullptr;
  const DeviceMath* math = nullptr;
};
// `kernels` must live as long as the process.
LAMELLA_PRIVATE_API void set_device_kernels(DeviceType type, const DeviceKernels* kernels);
// The table of a type; an empty one if nothing was set.
const DeviceKernels& device_kernels(DeviceType type);

}  // namespace lamella::native
