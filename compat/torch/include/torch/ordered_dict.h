// torch::OrderedDict.
#pragma once
#include "lamella/nn/ordered_dict.h"

namespace torch {
using lamella::nn::OrderedDict;
}  // namespace torch
