// torch::headeronly::DeviceType.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/core/DeviceType.h>
