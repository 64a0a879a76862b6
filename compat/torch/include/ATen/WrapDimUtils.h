// at::maybe_wrap_dim.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/WrapDimMinimal.h>
