// torch::optim: SGD, Adam, AdamW.
#pragma once
#include <torch/types.h>

#include "lamella/nn/optim.h"

namespace torch::optim {
using namespace lamella::optim;
}
