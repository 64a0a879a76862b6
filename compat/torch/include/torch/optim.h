// torch::optim: optimizers, and schedulers of their learning rates.
#pragma once
#include <torch/types.h>

#include "lamella/nn/optimizers.h"
#include "lamella/nn/schedulers.h"

namespace torch {
namespace optim = lamella::optim;
}
