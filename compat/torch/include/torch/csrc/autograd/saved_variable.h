// torch::autograd::SavedVariable.
#pragma once
#include <torch/csrc/autograd/variable.h>

#include "lamella/layers/autograd/context.h"
