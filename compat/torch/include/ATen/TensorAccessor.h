// at::TensorAccessor.
#pragma once
#include <ATen/core/TensorAccessor.h>
