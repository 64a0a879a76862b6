// torch::Tensor, torch::Dtype, torch::kFloat32, torch::empty, ….
#pragma once
#include <ATen/ATen.h>

namespace torch {
using Dtype = lamella::ScalarType;
}
