// torch::autograd::backward and grad.
#pragma once
#include <torch/csrc/autograd/variable.h>
