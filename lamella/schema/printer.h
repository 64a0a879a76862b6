// Printing functions that the parser also uses. Internal to lamella/schema.
#pragma once

#include <string>
#include <string_view>

#include "lamella/core/macros.h"

namespace lamella::detail {

// In double quotes, with `"`, `'`, `\` and what is not printable escaped.
LAMELLA_PRIVATE_API std::string quote_string(std::string_view content);
// 1., 0.5, 1.0000000000000001e-05, inf.
std::string float_text(double value);

}  // namespace lamella::detail
