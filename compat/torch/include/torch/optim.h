// torch::optim: optimizers and learning-rate schedulers.
#pragma once
#include <torch/types.h>

#include "lamella/nn/optimizers.h"
#include "lamella/nn/schedulers.h"

namespace torch {
namespace optim = lamella::optim;
}
