// The functions of a backend for operations along lines.
#include "lamella/kernels/device_lines.h"

#include <atomic>

#include "lamella/core/error.h"

namespace lamella::native {
namespace {
std::atomic<const DeviceLines*> backend_lines{nullptr};
DeviceType lines_type = DeviceType::CPU;  // set before `backend_lines`
}  // namespace

void set_device_lines(DeviceType type, const DeviceLines* lines) {
  lines_type = type;
  backend_lines.store(lines);
}
const DeviceLines& device_lines(const char* op, DeviceType type) {
  const DeviceLines* lines = backend_lines.load();
  LAMELLA_CHECK_NOT_IMPLEMENTED(lines != nullptr && type == lines_type, op,
                                ": expected a tensor on cpu, got ", Device(type));
  return *lines;
}
void require_on_device(bool done, const char* op, const TensorBase& on) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(done, op, ": expected operands with a kernel for ", on.device(),
                                ", got none for ", on.scalar_type());
}

}  // namespace lamella::native
