// c10::Dispatcher, c10::OperatorHandle, c10::TypedOperatorHandle.
#pragma once
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/operator_name.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <c10/util/Optional.h>

#include "lamella/dispatch/dispatcher.h"
