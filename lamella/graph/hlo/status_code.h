// Names of the canonical status codes, which XLA's statuses and its typed custom calls number
// alike.
#pragma once
#include <string_view>

namespace lamella::hlo {

// "INVALID_ARGUMENT" for 3; "UNKNOWN" for a number that is none.
std::string_view status_code_name(int code);

}  // namespace lamella::hlo
