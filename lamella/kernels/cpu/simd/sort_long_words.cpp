// Sorts long lists of words by Highway's quicksort in vectors, vqsort, whose headers alone are
// used: compiled once for each capability that has its instructions. J. Wassenberg et al.,
// Vectorized and performance-portable Quicksort, arXiv:2205.05982.
#include "lamella/kernels/cpu/simd/sort_long_words.h"

#if (defined(CPU_CAPABILITY_AVX2) || defined(CPU_CAPABILITY_AVX512)) && \
    __has_include(<hwy/contrib/sort/vqsort-inl.h>)
#define HWY_COMPILE_ONLY_STATIC
#define HWY_DISABLE_PCLMUL_AES
#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>
#define LAMELLA_HAS_VQSORT (HWY_MAJOR == 1 && HWY_MINOR == 0)
#else
#define LAMELLA_HAS_VQSORT 0
#endif

#if LAMELLA_HAS_VQSORT
HWY_BEFORE_NAMESPACE();
namespace lamella::native {
namespace HWY_NAMESPACE {
template <class T>
void sort_in_vectors(T* words, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  using Order = hn::detail::OrderAscending<T>;
  hn::SortTag<T> lanes;
  hn::detail::SharedTraits<hn::detail::TraitsLane<Order>> traits;
  HWY_ALIGN T room[hwy::SortConstants::BufNum<T>(HWY_LANES(T))];
  // A fixed seed; the library's own comes from the time and from addresses.
  hn::detail::Generator random(uint64_t{0x9e3779b97f4a7c15});
  size_t levels = 2 * hwy::CeilLog2(n) + 4;
  hn::detail::Recurse(lanes, traits, words, words + n, n, room, random, levels);
}
}  // namespace HWY_NAMESPACE
}  // namespace lamella::native
HWY_AFTER_NAMESPACE();
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
bool sort_long(T* words, int64_t n) {
#if LAMELLA_HAS_VQSORT
  if (n > 1) HWY_NAMESPACE::sort_in_vectors(words, static_cast<size_t>(n));
  return true;
#else
  return false;
#endif
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(sort_long_words_on, &sort_long<uint64_t>);
LAMELLA_REGISTER_KERNEL(sort_long_keys_on, &sort_long<uint32_t>);

}  // namespace lamella::native
