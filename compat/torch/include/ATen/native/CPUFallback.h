// at::native::cpu_fallback, at::native::call_fallback_fn.
#pragma once
#include <ATen/core/stack.h>
#include "lamella/api/functions.h"
#include "lamella/dispatch/cpu_fallback.h"

// PyTorch declares this macro in its operator headers.
#define ATEN_OP(name) at::_ops::name
#define ATEN_OP2(name, overload) at::_ops::name##_##overload
