// c10::KernelFunction: a kernel that is not registered yet.
#pragma once
#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/stack.h>
#include <c10/core/CompileTimeFunctionPointer.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/util/Metaprogramming.h>

#include "lamella/dispatch/kernel_function.h"

namespace c10 {
using KernelFunction = lamella::CppFunction;
namespace impl {
using lamella::CppSignature;
}
}  // namespace c10
