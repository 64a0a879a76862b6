// at::_ops: for each operator its C++ signature, name, call and redispatch.
#pragma once
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
