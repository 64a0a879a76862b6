// at::_ops: an operator's C++ type, name, call and redispatch.
#pragma once
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
