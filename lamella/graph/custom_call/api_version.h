// ApiVersion: how a custom call's target is called.
#pragma once
#include <cstdint>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Numbers are XLA's.
enum class ApiVersion : uint8_t {
  Unspecified = 0,
  Original = 1,
  StatusReturning = 2,
  StatusReturningUnified = 3,
  TypedFfi = 4,
};
// "API_VERSION_ORIGINAL".
std::string_view api_version_name(ApiVersion version);
// The version that a custom call states, or Original. Throws an Error that names the instruction
// where the word is unknown, or says API_VERSION_UNSPECIFIED.
ApiVersion api_version_of(const Instruction& instruction);

}  // namespace lamella::hlo
