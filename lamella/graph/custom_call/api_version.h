// ApiVersion: the calling convention of a custom call's target.
#pragma once
#include <cstdint>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The numbers are XLA's.
enum class ApiVersion : uint8_t {
  Unspecified = 0,
  Original = 1,
  StatusReturning = 2,
  StatusReturningUnified = 3,
  TypedFfi = 4,
};
// "API_VERSION_ORIGINAL".
std::string_view api_version_name(ApiVersion version);
// The version that a custom call states; Original if it states none. Throws an Error that names the
// instruction if the word is unknown or is API_VERSION_UNSPECIFIED.
ApiVersion api_version_of(const Instruction& instruction);

}  // namespace lamella::hlo
