// torch::jit, as far as it compiles without TorchScript.
#pragma once
#include <torch/csrc/jit/api/module.h>
