// Entries of pointwise operators, and the kernels made from them.
//
// Note [Pointwise entries]
//   `pointwise: RULE [LOOP]` says of an operator that it computes each element of its result from
//   the elements of its tensors at the same place. It implies a structured kernel over a
//   TensorIterator with a kernel for the CPU. RULE says what the result's dtype is: that in which
//   the operands meet (`same`), the same with integers made floating point (`float`), or `bool`.
//   The entry is then all there is to write but the loop, which is registered under the operator's
//   name or LOOP: meta and impl are generated. Tensors are the loop's operands in order, as is a
//   number named `self` or `other`; further numbers are its parameters. What else an operator
//   takes, or checks, asks for `pointwise: own`: meta and impl are written by hand.
#pragma once

#include "codegen/emit.h"
#include "codegen/model.h"

namespace lamella::codegen {

// The value of the field; nothing, with a report, where it is none or does not fit the signature.
std::optional<Pointwise> read_pointwise(const YamlNode& value, const FunctionSchema& schema,
                                        Diagnostics& diagnostics);

// What the field implies; the kernel's name only where the entry has no table.
void imply_structured(NativeFunction& function, bool has_dispatch);

// The definitions of meta and impl, for all entries whose rule is not `own`. Only for the library
// itself, as its loops are not exported.
std::string pointwise_definitions(const Model& model, const EmitOptions& options);

}  // namespace lamella::codegen
