// at::Tensor, at::OptionalTensorRef.
#pragma once
#include <ATen/core/TensorBase.h>
#include <c10/core/Scalar.h>

#include "lamella/api/functions.h"
#include "lamella/api/optional_tensor_ref.h"
