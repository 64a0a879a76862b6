// torch::NoGradGuard, torch::manual_seed.
#pragma once
#include <ATen/Context.h>
#include <torch/types.h>
