// torch::nn.
#pragma once
#include <torch/nn.h>
