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

// The kernel of an out form that has none of its own: it calls the functional form of its name with
// the same arguments, and copies. Defined by the kernels, which stand above.
LAMELLA_PRIVATE_API lamella_status compute_and_copy(const lamella_kernel*, const lamella_operator*,
                                                    uint64_t keys, const lamella_value* arguments,
                                                    lamella_value* returns);
inline KernelRow copying_row(const char* name, int32_t line) {
  return {name, nullptr, &compute_and_copy, line};
}

// All schemas and kernels, and all derivatives; written by lamella-gen.
void register_generated();
void register_generated_derivatives();
// Defined by the layers, which stand above; before the first operator is called.
void register_layers();

}  // namespace lamella
