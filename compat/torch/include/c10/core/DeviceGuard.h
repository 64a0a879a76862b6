// c10::DeviceGuard, c10::OptionalDeviceGuard.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/device_guard.h"
