// Entries of pointwise operators, and the kernels generated from them.
//
// Note [Pointwise entries]
//   `pointwise: RULE [LOOP]` declares that each element of an operator's result depends on the
//   elements of its tensors at the same place. It implies a structured kernel over a TensorIterator
//   with a kernel for the CPU. RULE gives the result's dtype: the common dtype of the operands
//   (`same`), the same with integers made floating point (`float`), or `bool`. Meta and impl are
//   generated; only the loop is written by hand, and registered under the operator's name or LOOP.
//   Tensors are the loop's operands in order, as is a number named `self` or `other`; further
//   numbers are its parameters. Operators with other arguments or checks use `pointwise: own`: meta
//   and impl are handwritten.
#pragma once

#include "codegen/emit.h"
#include "codegen/model.h"

namespace lamella::codegen {

// The value of the field; reports and returns nothing if it is invalid or does not fit the
// signature.
std::optional<Pointwise> read_pointwise(const YamlNode& value, const FunctionSchema& schema,
                                        Diagnostics& diagnostics);

// Sets what the field implies; the kernel's name only if the entry has no dispatch table.
void imply_structured(NativeFunction& function, bool has_dispatch);

// The definitions of meta and impl, for all entries whose rule is not `own`. Only for the library
// itself, as its loops are not exported.
std::string pointwise_definitions(const Model& model, const EmitOptions& options);

}  // namespace lamella::codegen
