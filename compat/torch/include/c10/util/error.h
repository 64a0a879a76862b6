// c10::utils::str_error: the text of an error number of the system.
#pragma once
#include <string>
#include <system_error>

namespace c10::utils {
inline std::string str_error(int number) { return std::generic_category().message(number); }
}  // namespace c10::utils
