// TORCH_ERROR_CODE_CHECK.
#pragma once
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
