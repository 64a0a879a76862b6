// torch::autograd::autogradNotImplementedFallback and related fallbacks.
#pragma once
#include <torch/library.h>

#include "lamella/layers/autograd/fallback.h"

namespace lamella::autograd {
// The same kernel, for m.fallback(...).
inline CppFunction basicAutogradNotImplementedFallback() {
  return autogradNotImplementedFallback();
}
}  // namespace lamella::autograd
