// The table of backends that have a current device.
#include "lamella/kernels/device_guard.h"

#include <atomic>

namespace lamella {
namespace {
std::atomic<ExchangeDevice> exchanges[256];
}

void set_exchange_device(DeviceType type, ExchangeDevice exchange) {
  exchanges[static_cast<uint8_t>(type)].store(exchange, std::memory_order_release);
}

void detail::DeviceGuard::enter(Device device) {
  if (device.index() < 0) return;
  ExchangeDevice exchange =
      exchanges[static_cast<uint8_t>(device.type())].load(std::memory_order_acquire);
  if (exchange == nullptr) return;
  former_ = exchange(device.index());
  exchange_ = exchange;
}

}  // namespace lamella
