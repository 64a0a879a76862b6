// torch::jit::Stack and its helpers.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace torch::jit {
using lamella::drop;
using lamella::IValue;
using lamella::last;
using lamella::peek;
using lamella::pop;
using lamella::push;
using lamella::Stack;
}  // namespace torch::jit
