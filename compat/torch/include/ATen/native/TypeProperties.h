// at::result_type and similar functions.
#pragma once
#include <ATen/core/Tensor.h>
