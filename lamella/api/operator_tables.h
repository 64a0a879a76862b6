// Tables of schemas and kernels, as lamella-gen writes them for the library's own operators.
// Internal: other libraries register through LAMELLA_LIBRARY.
#pragma once
#include "lamella/dispatch/library.h"
#include "lamella/dispatch/operator_rows.h"

namespace lamella {

template <auto f>
KernelRow kernel_row(const char* name, int32_t line) {
  using Signature = typename detail::FunctionType<decltype(f)>::type;
  return {name,
          reinterpret_cast<lamella_typed_function>(
              &abi::TypedKernel<detail::InvokeConstant<f>, Signature>::call),
          &abi::Call<Signature>::boxed, line};
}

// All schemas and kernels, and all derivatives; written by lamella-gen.
void register_generated();
void register_generated_derivatives();
// Defined by the layers, which stand above; before the first operator is called.
void register_layers();

}  // namespace lamella
