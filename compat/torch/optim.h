// torch::optim: SGD, Adam, AdamW.
#pragma once
#include <torch/types.h>

#include "lamella/nn/optim.h"

namespace torch {
namespace optim = lamella::optim;
}
