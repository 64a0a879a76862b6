// All of at::.
#pragma once
#include <ATen/DeviceGuard.h>
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/Operators.h>
#include <ATen/TensorAccessor.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Scalar.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Layout.h>
#include <c10/core/SymInt.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/Logging.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/complex.h>
#include <c10/util/irange.h>
#include <c10/util/string_view.h>
#include <torch/standard_headers.h>

#include "lamella/api/tensor_of.h"
#include "lamella/api/tensor_text.h"
