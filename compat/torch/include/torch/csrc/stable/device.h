// torch::stable::Device.
#pragma once
#include <c10/core/Device.h>
#include <torch/headeronly/core/DeviceType.h>

namespace torch::stable {
using Device = lamella::Device;
using DeviceIndex = int32_t;
}  // namespace torch::stable
