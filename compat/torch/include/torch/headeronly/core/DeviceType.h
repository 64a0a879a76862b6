// torch::headeronly::DeviceType.
#pragma once
#include <c10/core/DeviceType.h>
#include <torch/headeronly/lamella_names.h>
