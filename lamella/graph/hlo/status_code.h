// Names of the canonical status codes. XLA's statuses and its typed custom calls use the same
// numbers.
#pragma once
#include <string_view>

namespace lamella::hlo {

// "INVALID_ARGUMENT" for 3; "UNKNOWN" for a number that is not a status code.
std::string_view status_code_name(int code);

}  // namespace lamella::hlo
