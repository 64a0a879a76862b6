// digest(): a short name for bytes, by which equal ones are recognized.
#pragma once
#include <string>
#include <string_view>

namespace lamella::hlo {

// The number of digits in a digest.
inline constexpr size_t kDigestDigits = 32;

// The 128-bit XXH3 hash of the bytes as hexadecimal digits. Two texts that happen to differ share
// one with probability 2^-128; it does not protect against texts that were made to share one, so
// files that are found by it must lie where their reader alone may write.
std::string digest(std::string_view bytes);

}  // namespace lamella::hlo
