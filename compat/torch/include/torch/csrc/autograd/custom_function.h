// torch::autograd::Function and AutogradContext.
#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "lamella/layers/autograd/function.h"
