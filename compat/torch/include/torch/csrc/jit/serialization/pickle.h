// torch::pickle_save, torch::pickle_load.
#pragma once
#include <torch/serialize/archive.h>

namespace torch::jit {
using lamella::pickle_load;
using lamella::pickle_save;
}  // namespace torch::jit
