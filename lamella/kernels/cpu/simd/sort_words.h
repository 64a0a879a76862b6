// Sorting of short lists of 32-bit words and of lists of pairs, one kernel for each CPU capability.
#pragma once
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// Words behind the list that the kernel may overwrite.
inline constexpr int64_t kWordsSpare = 512;
// Sorts n words in ascending order by a bitonic network, which is fast up to about 10000 words.
using sort_words_fn = void (*)(uint32_t* words, int64_t n);
LAMELLA_KERNEL(sort_words_fn, sort_words_on);

// Sorts n < 2^31 words whose lower halves are ascending positions by their upper halves, which have
// `bits` bits. `other` has room for n words. Calls done(context, begin, count) for each stretch of
// pairs as soon as it is in order, while the caches have it. Returns false, and does nothing, if
// this capability has no fast network. See Note [Pairs in buckets].
using pairs_done_fn = void (*)(void* context, int64_t begin, int64_t count);
using sort_pairs_fn = bool (*)(uint64_t* pairs, uint64_t* other, int64_t n, int bits,
                               pairs_done_fn done, void* context);
LAMELLA_KERNEL(sort_pairs_fn, sort_pairs_on);

}  // namespace lamella::native
