// c10::DeviceType, at::kCPU, …, and the name of PrivateUse1's devices.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/backend.h"
