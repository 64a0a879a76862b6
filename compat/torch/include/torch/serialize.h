// torch::save, torch::load, and the archives of torch::serialize.
#pragma once
#include <torch/nn.h>
#include <torch/optim.h>

#include "lamella/nn/serialize/save.h"

namespace torch {
namespace serialize = lamella::serialize;
}
