// digest(): hashes with xxHash.
#include "lamella/graph/execute/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lamella::hlo {

std::string digest(std::string_view bytes) {
  XXH128_canonical_t number;
  XXH128_canonicalFromHash(&number, XXH3_128bits(bytes.data(), bytes.size()));
  std::string digits;
  for (unsigned char byte : number.digest) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

}  // namespace lamella::hlo
