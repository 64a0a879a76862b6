// torch::NoGradGuard, torch::manual_seed.
#pragma once
#include <torch/types.h>
