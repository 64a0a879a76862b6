// at::TensorArg and the checks of arguments.
#pragma once
#include <ATen/ATen.h>

#include "lamella/api/tensor_checks.h"
