// torch::kMean, torch::kReflect and other words of options.
#pragma once
#include <torch/nn.h>
