// The counter-based generator Philox4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel
// random numbers: as easy as 1, 2, 3, 2011), for the host and devices.
#pragma once
#include <cstdint>

namespace lamella {

struct PhiloxWords {
  uint32_t word[4];
};
// The words of one counter: `index` within a `subsequence`, of the key `seed`.
constexpr PhiloxWords philox(uint64_t seed, uint64_t subsequence, uint64_t index) {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  PhiloxWords c = {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                    static_cast<uint32_t>(subsequence), static_cast<uint32_t>(subsequence >> 32)}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c.word[0], b = uint64_t{0xCD9E8D57} * c.word[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.word[1] ^ key0, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ c.word[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return c;
}

}  // namespace lamella
