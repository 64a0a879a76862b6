// Operators of tensors.
#pragma once
#include <ATen/core/Tensor.h>
