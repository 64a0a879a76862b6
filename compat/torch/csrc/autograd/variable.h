// torch::autograd::Variable, variable_list, tensor_list.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/layers/autograd/backward.h"
