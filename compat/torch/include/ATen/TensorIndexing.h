// at::indexing::Slice, at::indexing::TensorIndex.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/api/indexing.h"

namespace at::indexing {
using namespace lamella::indexing;
}
