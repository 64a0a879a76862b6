// The table of a backend's matrix products, convolutions, transforms and factorisations.
#include "lamella/kernels/device_math.h"

#include <atomic>

namespace lamella::native {
namespace {
std::atomic<const DeviceMath*> backend_math{nullptr};
DeviceType math_type = DeviceType::CPU;  // set before `backend_math`
}  // namespace

void set_device_math(DeviceType type, const DeviceMath* math) {
  math_type = type;
  backend_math.store(math);
}

void check_solved(bool solved, const char* op, Device device) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(solved, op, ": expected a problem that ", device,
                                " solves, got one that it does not");
}
const DeviceMath& device_math(const char* op, Device device) {
  const DeviceMath* math = backend_math.load();
  check_solved(math != nullptr && device.type() == math_type, op, device);
  return *math;
}

}  // namespace lamella::native
