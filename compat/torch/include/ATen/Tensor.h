// at::Tensor.
#pragma once
#include <ATen/core/Tensor.h>
