// c10::Storage: the result of Tensor::storage().
#pragma once
#include <ATen/core/Tensor.h>

namespace c10 {
using Storage = lamella::TensorMemory;
}
