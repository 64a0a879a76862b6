// torch::Tensor.
#pragma once
#include <torch/types.h>
