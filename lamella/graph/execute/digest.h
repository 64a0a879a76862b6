// digest(): a short name for bytes. Equal bytes have equal names.
#pragma once
#include <string>
#include <string_view>

namespace lamella::hlo {

// The number of digits in a digest.
inline constexpr size_t kDigestDigits = 32;

// The 128-bit XXH3 hash of the bytes as hexadecimal digits. Two different texts collide with
// probability 2^-128. It is not a cryptographic hash: files that are found by it must be writable
// by their reader only.
std::string digest(std::string_view bytes);

}  // namespace lamella::hlo
