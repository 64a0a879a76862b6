// c10::CompileTimeFunctionPointer and TORCH_FN: a type that stands for a function.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/dispatch/kernel_function.h"

namespace c10 {
template <class FuncType, FuncType* f>
using CompileTimeFunctionPointer = lamella::CompileTimeFunction<f>;
template <class T>
using is_compile_time_function_pointer = lamella::detail::is_compile_time_function<T>;
}  // namespace c10

#define TORCH_FN_TYPE(func) ::lamella::CompileTimeFunction<func>
#define TORCH_FN(func) LAMELLA_FN(func)
