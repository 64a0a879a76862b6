// c10::Device.
#pragma once
#include <c10/core/DeviceType.h>
#include <c10/lamella_names.h>
#include "lamella/core/device.h"
