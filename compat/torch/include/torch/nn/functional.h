// torch::nn::functional.
#pragma once
#include <torch/nn.h>
