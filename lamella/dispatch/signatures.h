// Compares the signatures of kernels with schemas. Internal to Lamella.
#pragma once
#include <string>
#include <string_view>

#include "lamella/schema/schema.h"

namespace lamella {

// The signature that a kernel of this schema has, as abi_types.h spells it.
std::string signature_of(const FunctionSchema& schema);
// Why a kernel of signature `got` cannot serve a schema of signature `expected`; "" where it can.
std::string signature_difference(std::string_view expected, std::string_view got);
// "(Tensor, Scalar?) -> Tensor" for "T?S>T".
std::string signature_text(std::string_view signature);
// "(Tensor _0, Scalar _1) -> Tensor" for "TS>T"; throws where a code has no schema type.
std::string schema_of_signature(std::string_view signature);

}  // namespace lamella
