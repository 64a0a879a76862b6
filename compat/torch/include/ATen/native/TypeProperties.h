// at::result_type and its kin.
#pragma once
#include <ATen/core/Tensor.h>
