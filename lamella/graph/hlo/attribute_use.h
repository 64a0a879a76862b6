// What the text of an instruction must state beside its operands. Internal to lamella/graph.
#pragma once
#include <optional>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The values of api_version, in the order of custom_call's ApiVersion. A text cannot state the
// first.
inline constexpr std::string_view kApiVersions[] = {
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

// Whether the text of the opcode may have the attribute.
bool takes_attribute(Opcode opcode, AttributeKey key);
// Throws if the instruction lacks an attribute that its opcode needs, or if operands and attributes
// contradict each other. This is what XLA's parser refuses without knowing shapes; verify() checks
// the shapes.
void require_attributes(const Instruction& i);
// The same for a link of an asynchronous chain, whose wrapped operation is `wrapped` in the short
// notation. The computation that a chain calls must be known.
void require_chain(const Instruction& i, std::optional<Opcode> wrapped);
// Throws if two async-starts call one computation.
void require_own_computations(const Module& module);

}  // namespace lamella::hlo
