// at::device_of and the device guards.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
