// Sorting words by digits, the least significant first.
#pragma once
#include <cstdint>

namespace lamella::native {

// Sorts n <= 2^32 words by their upper halves, of which the lowest `bits` differ, in stable order.
// The result is where it returns: `words` or `other`, which has room for as many.
uint64_t* sort_by_digits(uint64_t* words, uint64_t* other, int64_t n, int bits);

}  // namespace lamella::native
