// c10::Storage: what Tensor::storage() gives.
#pragma once
#include <ATen/core/Tensor.h>

namespace c10 {
using Storage = lamella::TensorMemory;
}
