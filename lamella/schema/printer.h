// Pieces of printing that the parser shares. Internal to lamella/schema.
#pragma once

#include <string>
#include <string_view>

namespace lamella::detail {

// In double quotes, with `"`, `'`, `\` and what is not printable escaped.
std::string quote_string(std::string_view content);
// 1., 0.5, 1.0000000000000001e-05, inf.
std::string float_text(double value);

}  // namespace lamella::detail
