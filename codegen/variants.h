// Derivation of the functional, in-place and out forms of an operation from each other.
#pragma once

#include "codegen/model.h"

namespace lamella::codegen {

// True if the schema has dtype, layout, device and pin_memory, keyword-only and in that order.
bool has_tensor_options(const FunctionSchema& schema);

// The form without mutation: written arguments are plain and, unless returned already, returned
// last as NAME_out; out arguments are gone. The name is that of `schema`.
FunctionSchema without_mutation(const FunctionSchema& schema);

}  // namespace lamella::codegen
