// The tables of backends' kernels, by device type.
#include "lamella/kernels/device_kernels.h"

#include <atomic>

#include "lamella/core/error.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/kernels/device_math.h"

namespace lamella::native {
namespace {
constexpr DeviceKernels kNone;
std::atomic<const DeviceKernels*> tables[kDeviceTypes];  // null: kNone
}  // namespace

void set_device_kernels(DeviceType type, const DeviceKernels* kernels) {
  tables[static_cast<size_t>(type)].store(kernels);
}
const DeviceKernels& device_kernels(DeviceType type) {
  const DeviceKernels* kernels = tables[static_cast<size_t>(type)].load();
  return kernels == nullptr ? kNone : *kernels;
}

const DeviceLines& device_lines(const char* op, DeviceType type) {
  const DeviceLines* lines = device_kernels(type).lines;
  LAMELLA_CHECK_NOT_IMPLEMENTED(lines != nullptr, op, ": expected a tensor on cpu, got ",
                                Device(type));
  return *lines;
}
void require_on_device(bool done, const char* op, const TensorBase& on) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(done, op, ": expected operands with a kernel for ", on.device(),
                                ", got none for ", on.scalar_type());
}

void check_solved(bool solved, const char* op, Device device) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(solved, op, ": expected a problem that ", device,
                                " solves, got one that it does not");
}
const DeviceMath& device_math(const char* op, Device device) {
  const DeviceMath* math = device_kernels(device.type()).math;
  check_solved(math != nullptr, op, device);
  return *math;
}

}  // namespace lamella::native
