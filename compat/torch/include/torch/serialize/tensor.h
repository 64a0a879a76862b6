// torch::save and torch::load of tensors.
#pragma once
#include <torch/serialize.h>
