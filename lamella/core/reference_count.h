// Steps of reference counts and of other shared words, which need no locked instruction as long as
// the process has one thread. Internal.
#pragma once
#include "lamella/core/macros.h"

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define LAMELLA_ONE_THREAD (__libc_single_threaded != 0)
#else
#define LAMELLA_ONE_THREAD false
#endif

namespace lamella::detail {

// Note [Counting with one thread]
//   A locked instruction takes about twenty cycles, and a small call has several. The C library
//   knows whether a second thread was ever started. Until then a load and a store do the same: only
//   this thread could start another one, and it does not do so in between.

template <class N>
LAMELLA_ALWAYS_INLINE void count_up(N* count, int order = __ATOMIC_RELAXED) {
  if (LAMELLA_ONE_THREAD) {
    ++*count;
  } else {
    __atomic_fetch_add(count, N{1}, order);
  }
}
// What is left afterwards.
template <class N>
LAMELLA_ALWAYS_INLINE N count_down(N* count) {
  return LAMELLA_ONE_THREAD ? --*count : __atomic_sub_fetch(count, N{1}, __ATOMIC_ACQ_REL);
}
// Puts `fresh` in the place of `*expected`. False: `*word` is another one, which *expected becomes.
template <class N>
LAMELLA_ALWAYS_INLINE bool replace_value(N* word, N* expected, N fresh) {
  if (!LAMELLA_ONE_THREAD) {
    return __atomic_compare_exchange_n(word, expected, fresh, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
  }
  if (*word != *expected) {
    *expected = *word;
    return false;
  }
  *word = fresh;
  return true;
}
// Counts a reference where there is one already. False: the object is on its way out.
template <class N>
LAMELLA_ALWAYS_INLINE bool count_up_unless_zero(N* count) {
  N there = __atomic_load_n(count, __ATOMIC_RELAXED);
  while (there != 0 && !replace_value(count, &there, there + 1)) {
  }
  return there != 0;
}

}  // namespace lamella::detail
