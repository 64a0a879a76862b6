// Loops over keys (order_keys.h), which the compiler vectorises.
#include "lamella/kernels/cpu/simd/order_keys.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef CPU_CAPABILITY
#define CPU_CAPABILITY DEFAULT
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class U, bool is_float, class K>
void read_as(const KeyKind& given, const char* from, int64_t stride, int64_t n, K* keys) {
  const KeyKind kind = given;
  if (stride == sizeof(U)) {
    auto* p = reinterpret_cast<const U*>(from);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) keys[i] = key_of<U, is_float>(p[i], kind);
    return;
  }
  constexpr int64_t kBlock = 256;
  U block[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    int64_t count = n - at < kBlock ? n - at : kBlock;
    const char* p = from + at * stride;
    for (int64_t i = 0; i < count; ++i, p += stride) block[i] = *reinterpret_cast<const U*>(p);
    for (int64_t i = 0; i < count; ++i) keys[at + i] = key_of<U, is_float>(block[i], kind);
  }
}

void read32(const KeyKind& kind, const char* from, int64_t stride, int64_t n, uint32_t* keys) {
  if (kind.is_bool) {
    auto flip = static_cast<uint32_t>(kind.flip);
    for (int64_t i = 0; i < n; ++i) keys[i] = (from[i * stride] != 0 ? 1u : 0u) ^ flip;
  } else if (kind.bytes == 1) {
    read_as<uint8_t, false>(kind, from, stride, n, keys);
  } else if (kind.bytes == 2) {
    kind.is_float ? read_as<uint16_t, true>(kind, from, stride, n, keys)
                  : read_as<uint16_t, false>(kind, from, stride, n, keys);
  } else {
    kind.is_float ? read_as<uint32_t, true>(kind, from, stride, n, keys)
                  : read_as<uint32_t, false>(kind, from, stride, n, keys);
  }
}
void read64(const KeyKind& kind, const char* from, int64_t stride, int64_t n, uint64_t* keys) {
  kind.is_float ? read_as<uint64_t, true>(kind, from, stride, n, keys)
                : read_as<uint64_t, false>(kind, from, stride, n, keys);
}

template <class K>
KeyBounds<K> bounds(const K* keys, int64_t n) {
  K first = keys[0], least = first, most = first, varying = 0, falls = 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    K key = keys[i + 1];
    least = key < least ? key : least;
    most = key > most ? key : most;
    varying |= key ^ first;
    falls |= keys[i] > key ? K(1) : K(0);
  }
  return {least, most, varying, falls == 0};
}

template <class K>
void pack(const K* keys, int64_t n, K least, int right, int left, uint32_t* words) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    words[i] = static_cast<uint32_t>((keys[i] - least) >> right) << left | static_cast<uint32_t>(i);
  }
}

template <class K>
void pair(const K* keys, int64_t n, K least, int right, int64_t first, uint64_t* words) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    words[i] =
        static_cast<uint64_t>((keys[i] - least) >> right) << 32 | static_cast<uint64_t>(first + i);
  }
}

template <class K>
void least_by_lane(const K* keys, int64_t n, K* lanes) {
  K least[kKeyLanes];
  for (K& lane : least) lane = static_cast<K>(~K(0));
  int64_t i = 0;
  for (; i + kKeyLanes <= n; i += kKeyLanes) {
    for (int64_t l = 0; l < kKeyLanes; ++l) {
      least[l] = keys[i + l] < least[l] ? keys[i + l] : least[l];
    }
  }
  for (int64_t l = 0; i + l < n; ++l) {
    least[l] = keys[i + l] < least[l] ? keys[i + l] : least[l];
  }
  for (int64_t l = 0; l < kKeyLanes; ++l) lanes[l] = least[l];
}

template <class K>
int64_t append(const K* keys, int64_t n, K limit, int64_t first, KeyAndIndex<K>* out) {
  constexpr int64_t kGroup = 32;
  int64_t count = 0, i = 0;
  auto take = [&](int64_t at) {
    out[count] = {keys[at], first + at};
    count += keys[at] <= limit ? 1 : 0;
  };
  for (; i + kGroup <= n; i += kGroup) {
    K any = 0;
    for (int64_t l = 0; l < kGroup; ++l) any |= keys[i + l] <= limit ? K(1) : K(0);
    if (any == 0) continue;
    for (int64_t l = 0; l < kGroup; ++l) take(i + l);
  }
  for (; i < n; ++i) take(i);
  return count;
}

template <class K>
int64_t count_of(const K* keys, int64_t n, K key) {
  K count = 0;
  for (int64_t i = 0; i < n; ++i) count += keys[i] == key ? K(1) : K(0);
  return static_cast<int64_t>(count);
}

// Several values are searched for at once, without branches, so that their memory accesses overlap.
constexpr int kTogether = 8;
template <int kCount, class K>
inline void search_together(const K* sorted, int64_t n, const K* values, int64_t* found) {
  K base[kCount] = {};
  auto step = [&](K offset, K by) {
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) {
      base[j] += by & (K(0) - static_cast<K>(sorted[base[j] + offset] < values[j]));
    }
  };
  auto length = static_cast<K>(n);
  for (; length > 1; length -= length / 2) step(length / 2 - 1, length / 2);
  if (n > 0) step(0, 1);
  for (int j = 0; j < kCount; ++j) found[j] = static_cast<int64_t>(base[j]);
}
#if defined(CPU_CAPABILITY_AVX512)
// search_together() for 32 values at a time, with gather instructions.
inline int64_t search_gathering(const uint32_t* sorted, int64_t n, const uint32_t* values,
                                int64_t count, int64_t* found) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m512i value[2], base[2];
    for (int j = 0; j < 2; ++j) {
      value[j] = _mm512_loadu_si512(values + i + 16 * j);
      base[j] = _mm512_setzero_si512();
    }
    auto step = [&](int64_t offset, int64_t by) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        __m512i key = _mm512_mask_i32gather_epi32(base[j], 0xffff, base[j], sorted + offset, 4);
        __mmask16 less = _mm512_cmplt_epu32_mask(key, value[j]);
        base[j] =
            _mm512_mask_add_epi32(base[j], less, base[j], _mm512_set1_epi32(static_cast<int>(by)));
      }
    };
    int64_t length = n;
    for (; length > 1; length -= length / 2) step(length / 2 - 1, length / 2);
    if (n > 0) step(0, 1);
    uint32_t places[32];
    for (int j = 0; j < 2; ++j) _mm512_storeu_si512(places + 16 * j, base[j]);
    for (int j = 0; j < 32; ++j) found[i + j] = places[j];
  }
  return i;
}
inline int64_t search_gathering(const uint64_t*, int64_t, const uint64_t*, int64_t, int64_t*) {
  return 0;
}
#endif
template <class K>
void search(const K* sorted, int64_t n, const K* values, int64_t count, int64_t* found) {
  int64_t i = 0;
#if defined(CPU_CAPABILITY_AVX512)
  i = search_gathering(sorted, n, values, count, found);
#endif
  for (; i + kTogether <= count; i += kTogether) {
    search_together<kTogether>(sorted, n, values + i, found + i);
  }
  for (; i < count; ++i) search_together<1>(sorted, n, values + i, found + i);
}

template <class U>
void store_picked_as(const uint32_t* words, int64_t n, uint32_t mask, const char* from,
                     char* values) {
  auto* source = reinterpret_cast<const U*>(from);
  auto* out = reinterpret_cast<U*>(values);
#pragma GCC unroll 8
  for (int64_t i = 0; i < n; ++i) out[i] = source[words[i] & mask];
}
void store_picked(const uint32_t* words, int64_t n, uint32_t mask, int bytes, const char* from,
                  char* values, int64_t* indices) {
  for (int64_t i = 0; i < n; ++i) indices[i] = static_cast<int64_t>(words[i] & mask);
  switch (bytes) {
    case 1:
      return store_picked_as<uint8_t>(words, n, mask, from, values);
    case 2:
      return store_picked_as<uint16_t>(words, n, mask, from, values);
    case 4:
      return store_picked_as<uint32_t>(words, n, mask, from, values);
    default:
      return store_picked_as<uint64_t>(words, n, mask, from, values);
  }
}

template <class U, bool is_float>
bool store_sorted_as(const SortedPairs& pairs, const KeyKind& kind, void* values,
                     int64_t* indices) {
  constexpr U kSign = U(1) << (sizeof(U) * 8 - 1);
  const auto least = static_cast<U>(pairs.least), flip = static_cast<U>(kind.flip),
             invert = static_cast<U>(kind.invert);
  const int right = pairs.right;
  constexpr int64_t kBlock = 256;
  U keys[kBlock], special = 0;
  // Words and indices may be the same memory, so the keys are taken first.
  for (int64_t at = 0; at < pairs.n; at += kBlock) {
    const int64_t count = pairs.n - at < kBlock ? pairs.n - at : kBlock;
    const uint64_t* words = pairs.words + at;
    auto* out = static_cast<U*>(values) + at;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) keys[i] = static_cast<U>(words[i] >> 32);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      indices[at + i] = static_cast<int64_t>(words[i] & 0xffffffffu);
    }
    for (int64_t i = 0; i < count; ++i) {
      auto key = static_cast<U>((keys[i] << right) + least);
      if constexpr (is_float) {
        key ^= invert;
        special |= (key == kSign) | (key == static_cast<U>(~U(0))) ? U(1) : U(0);
        out[i] = key & kSign ? key ^ kSign : ~key;
      } else {
        out[i] = key ^ flip;
      }
    }
  }
  return special != 0;
}
bool store_sorted(const SortedPairs& pairs, const KeyKind& kind, void* values, int64_t* indices) {
  if (kind.bytes == 8) {
    return kind.is_float ? store_sorted_as<uint64_t, true>(pairs, kind, values, indices)
                         : store_sorted_as<uint64_t, false>(pairs, kind, values, indices);
  }
  return kind.is_float ? store_sorted_as<uint32_t, true>(pairs, kind, values, indices)
                       : store_sorted_as<uint32_t, false>(pairs, kind, values, indices);
}

bool has_ties(const uint32_t* words, int64_t n, uint32_t mask) {
  uint32_t any = 0;
  for (int64_t i = 0; i + 1 < n; ++i) any |= (words[i] ^ words[i + 1]) <= mask ? 1u : 0u;
  return any != 0;
}

template <class K>
constexpr KeyLoops<K> make_loops(decltype(KeyLoops<K>::read) read) {
  return {read,       &bounds<K>,   &pack<K>,  &pair<K>, &least_by_lane<K>,
          &append<K>, &count_of<K>, &search<K>};
}
const KeyLoops<uint32_t>& key_loops32() {
  static constexpr KeyLoops<uint32_t> loops = make_loops<uint32_t>(&read32);
  return loops;
}
const KeyLoops<uint64_t>& key_loops64() {
  static constexpr KeyLoops<uint64_t> loops = make_loops<uint64_t>(&read64);
  return loops;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(key_loops32_on, &key_loops32);
LAMELLA_REGISTER_KERNEL(key_loops64_on, &key_loops64);
LAMELLA_REGISTER_KERNEL(has_ties_on, &has_ties);
LAMELLA_REGISTER_KERNEL(store_picked_on, &store_picked);
LAMELLA_REGISTER_KERNEL(store_sorted_on, &store_sorted);

}  // namespace lamella::native
