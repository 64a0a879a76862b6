// Sorting of short lists of 32-bit words, one kernel for each CPU capability.
#pragma once
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Words behind the list that the kernel may overwrite.
inline constexpr int64_t kWordsSpare = 512;
// Sorts n words in ascending order by a bitonic network, which is fast up to about 10000 words.
using sort_words_fn = void (*)(uint32_t* words, int64_t n);
LAMELLA_KERNEL(sort_words_fn, sort_words_on);

}  // namespace lamella::native
