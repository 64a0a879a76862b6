// Tables of schemas and kernels, as lamella-gen writes them for the library's own operators.
// Internal: other libraries register through LAMELLA_LIBRARY.
#pragma once
#include "lamella/abi/autograd.h"
#include "lamella/dispatch/library.h"

namespace lamella {

struct SchemaRow {
  const char* schema;
  const char* tags;  // comma-separated, or null
  uint32_t line;     // of the declaration
};

struct KernelRow {
  const char* name;  // aten::add.Tensor
  lamella_typed_function typed;
  lamella_boxed_function boxed;
  uint32_t line;
};

struct DerivativeRow {
  const char* name;  // aten::add.Tensor
  const lamella_derivative* derivative;
  uint32_t line;
};

template <auto f>
KernelRow kernel_row(const char* name, uint32_t line) {
  using Signature = typename detail::FunctionType<decltype(f)>::type;
  return {name,
          reinterpret_cast<lamella_typed_function>(
              &abi::TypedKernel<detail::InvokeConstant<f>, Signature>::call),
          &abi::Call<Signature>::boxed, line};
}

// `file` is where the declarations stand. The schemas were checked by the generator, so they are
// parsed when first used. Rows must live as long as the program.
void register_schemas(const char* name_space, const char* file, ArrayRef<SchemaRow> rows);
void register_kernels(DispatchKey key, const char* file, ArrayRef<KernelRow> rows);
void register_derivatives(const char* file, ArrayRef<DerivativeRow> rows);

// All schemas and kernels, and all derivatives; written by lamella-gen.
void register_generated();
void register_generated_derivatives();
// Defined by the layers, which stand above; before the first operator is called.
void register_layers();

}  // namespace lamella
