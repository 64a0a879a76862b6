// Radix sort of words, the least significant digit first.
#pragma once
#include <cstdint>

namespace lamella::native {

// Sorts n <= 2^32 words by the lowest `bits` bits of their upper halves, stably. Returns the sorted
// array, which is `words` or `other`; `other` has room for n words.
uint64_t* sort_by_digits(uint64_t* words, uint64_t* other, int64_t n, int bits);

}  // namespace lamella::native
