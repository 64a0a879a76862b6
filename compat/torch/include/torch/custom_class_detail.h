// torch::arg, torch::init.
#pragma once
#include <torch/custom_class.h>
