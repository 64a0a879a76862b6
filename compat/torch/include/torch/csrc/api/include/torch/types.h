// torch::Tensor, torch::Dtype, ….
#pragma once
#include <torch/types.h>
