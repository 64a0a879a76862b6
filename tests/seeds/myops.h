// The dispatching function of the tutorial's example: the public C++ API of its one operator.
#pragma once
#include <torch/script.h>

// Elementwise sum of two tensors of the same shape.
torch::Tensor myadd(const torch::Tensor& self, const torch::Tensor& other);
