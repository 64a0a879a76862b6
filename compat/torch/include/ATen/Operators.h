// at::_ops: for each operator its C++ signature, name, call and redispatch.
#pragma once
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#define ATEN_OP(name) at::_ops::name
#define ATEN_OP2(name, overload) at::_ops::name##_##overload
#define ATEN_FN(name) ATEN_OP(name)::call
#define ATEN_FN2(name, overload) ATEN_OP2(name, overload)::call
