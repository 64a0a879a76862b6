// Sorting of long lists of words, one kernel for each CPU capability.
#pragma once
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Sorts n words in ascending order and returns true; returns false if this capability has no sort
// in vectors, or Lamella was built without one.
using sort_long_words_fn = bool (*)(uint64_t* words, int64_t n);
LAMELLA_KERNEL(sort_long_words_fn, sort_long_words_on);
using sort_long_keys_fn = bool (*)(uint32_t* words, int64_t n);
LAMELLA_KERNEL(sort_long_keys_fn, sort_long_keys_on);

}  // namespace lamella::native
