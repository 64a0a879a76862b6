// c10::FunctionSchema and c10::Argument, as boxed kernels read them.
#pragma once
#include <ATen/core/operator_name.h>

#include "lamella/dispatch/value_type.h"

namespace c10 {
using FunctionSchema = lamella::OperatorSchema;
using Argument = lamella::ArgumentInfo;
}  // namespace c10
