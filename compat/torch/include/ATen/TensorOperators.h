// C++ operators (+, -, …) for tensors.
#pragma once
#include <ATen/core/Tensor.h>
