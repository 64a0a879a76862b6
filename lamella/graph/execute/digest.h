// digest(): a number for bytes that no other bytes have.
#pragma once
#include <string>
#include <string_view>

namespace lamella::hlo {

// SHA-256 (FIPS 180-4) as 64 hexadecimal digits.
std::string digest(std::string_view bytes);

}  // namespace lamella::hlo
