// Random numbers and dropout by kernels of the device.
#pragma once
#include "lamella/cuda/backend.h"

namespace lamella::cuda {

void register_random(Library& aten);

}  // namespace lamella::cuda
