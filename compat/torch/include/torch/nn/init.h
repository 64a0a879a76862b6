// torch::nn::init.
#pragma once
#include <torch/nn.h>
