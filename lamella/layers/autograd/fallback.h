// Kernels for the Autograd and ADInplaceOrView keys of operators that bring no derivative. Public,
// inline over lamella/abi/autograd.h.
#pragma once
#include "lamella/abi/autograd.h"
#include "lamella/dispatch/kernel_function.h"

namespace lamella::autograd {

// m.impl("op", autogradNotImplementedFallback()) for the key Autograd: calls the operator below
// autograd; if an input requires gradients, so do the outputs, and their backward is an error that
// names the operator. With m.fallback(...) for a backend's Autograd key it serves all operators
// without a kernel of their own for it.
inline CppFunction autogradNotImplementedFallback() {
  return CppFunction::makeFromBoxedKernel(&lamella_autograd_not_implemented);
}
// The same for the key ADInplaceOrView, next to the one above: tracks versions and views for
// operators that write an argument or return a view of one, as their schema says.
inline CppFunction autogradNotImplementedInplaceOrViewFallback() {
  return CppFunction::makeFromBoxedKernel(&lamella_autograd_inplace_or_view);
}

}  // namespace lamella::autograd
