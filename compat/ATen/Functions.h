// at::add, at::empty and all other functions.
#pragma once
#include <ATen/core/Tensor.h>
