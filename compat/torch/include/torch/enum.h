// torch::kMean, torch::kReflect and other option words.
#pragma once
#include <torch/nn.h>
