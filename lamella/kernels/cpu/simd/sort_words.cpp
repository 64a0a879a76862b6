// Sorts short lists of 32-bit words with networks of minima and maxima in vectors, and longer lists
// of pairs by way of such lists.
//
// Note [Networks in vectors]
//   A block of up to 32 vectors is seen as a matrix whose columns are the lanes. The columns are
//   sorted by Batcher's network, without any shuffle; then bitonic merges join columns by twos,
//   fours and so on, in which only the steps between columns move lanes. The matrix is transposed,
//   and sorted blocks are merged by the same network over whole vectors. Vectors past the end count
//   as greater than all others and are left out.
//   K. E. Batcher, Sorting networks and their applications, AFIPS 1968.
//
// Note [Pairs in buckets]
//   A pair is a word of 64 bits, a key above a position. The leading bits of the keys say which
//   bucket a pair belongs to, and pairs are moved to their buckets in order, so that equal keys
//   stay in the order of their positions. Neighbouring buckets with few pairs are taken together,
//   and what is left of the keys, above the place in the bucket, makes short words for a network.
//   Bits that do not fit are left out, and words that are equal without them are ordered
//   afterwards. A bucket with many pairs, or with many of such words, is divided by its next bits.
#include "lamella/kernels/cpu/simd/sort_words.h"

#include <utility>

#include "lamella/kernels/cpu/simd/vector_size.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

constexpr int kLanes = kVecBytes / 4;
typedef uint32_t Vec32 __attribute__((vector_size(kVecBytes)));
typedef Vec32 VecMemory __attribute__((aligned(4), may_alias));

#define LAMELLA_INLINE inline __attribute__((always_inline))

LAMELLA_INLINE Vec32 load(const uint32_t* p) { return *reinterpret_cast<const VecMemory*>(p); }
LAMELLA_INLINE void store(uint32_t* p, Vec32 v) { *reinterpret_cast<VecMemory*>(p) = v; }

LAMELLA_INLINE void order(Vec32& low, Vec32& high) {
  Vec32 a = low, b = high;
#if defined(CPU_CAPABILITY_AVX2)
  // GCC 12 does not always recognize the minimum and maximum in the general form for this width.
  low = (Vec32)_mm256_min_epu32((__m256i)a, (__m256i)b);
  high = (Vec32)_mm256_max_epu32((__m256i)a, (__m256i)b);
#else
  low = a < b ? a : b;
  high = a < b ? b : a;
#endif
}

template <int kXor, size_t... I>
LAMELLA_INLINE Vec32 swap_lanes(Vec32 v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, (I ^ kXor)...);
}
template <int kXor>
LAMELLA_INLINE Vec32 swap_lanes(Vec32 v) {
  return swap_lanes<kXor>(v, std::make_index_sequence<kLanes>());
}
// Takes the lanes whose number has the bit kBit from `b`, and the others from `a`.
template <int kBit, size_t... I>
LAMELLA_INLINE Vec32 blend(Vec32 a, Vec32 b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I & kBit ? I + kLanes : I)...);
}
template <int kBit>
LAMELLA_INLINE Vec32 blend(Vec32 a, Vec32 b) {
  return blend<kBit>(a, b, std::make_index_sequence<kLanes>());
}

// ---- One block ----

// Batcher's merge of the rows From, From + Step, ... of two sorted halves.
template <int kFrom, int kRows, int kStep, int R>
LAMELLA_INLINE void merge_rows(Vec32 (&v)[R]) {
  if constexpr (2 * kStep < kRows) {
    merge_rows<kFrom, kRows, 2 * kStep>(v);
    merge_rows<kFrom + kStep, kRows, 2 * kStep>(v);
#pragma GCC unroll 32
    for (int i = kFrom + kStep; i + kStep < kFrom + kRows; i += 2 * kStep) {
      order(v[i], v[i + kStep]);
    }
  } else {
    order(v[kFrom], v[kFrom + kStep]);
  }
}
template <int kFrom, int kRows, int R>
LAMELLA_INLINE void sort_rows(Vec32 (&v)[R]) {
  if constexpr (kRows > 1) {
    sort_rows<kFrom, kRows / 2>(v);
    sort_rows<kFrom + kRows / 2, kRows / 2>(v);
    merge_rows<kFrom, kRows, 1>(v);
  }
}

// Orders lanes that are kDistance apart, then those half that distance apart, and so on.
template <int kDistance>
LAMELLA_INLINE Vec32 merge_lanes(Vec32 v) {
  if constexpr (kDistance > 0) {
    Vec32 low = v, high = swap_lanes<kDistance>(v);
    order(low, high);
    return merge_lanes<kDistance / 2>(blend<kDistance>(low, high));
  }
  return v;
}
// Merges pairs of sorted groups of columns into sorted groups of kGroup columns, then of twice as
// many, and so on.
template <int kGroup, int R>
LAMELLA_INLINE void merge_columns(Vec32 (&v)[R]) {
  if constexpr (kGroup <= kLanes) {
#pragma GCC unroll 32
    for (int i = 0; i < R / 2; ++i) {
      Vec32 low = v[i], high = swap_lanes<kGroup - 1>(v[R - 1 - i]);
      order(low, high);
      v[i] = merge_lanes<kGroup / 4>(blend<kGroup / 2>(low, high));
      v[R - 1 - i] = merge_lanes<kGroup / 4>(swap_lanes<kGroup - 1>(blend<kGroup / 2>(high, low)));
    }
#pragma GCC unroll 8
    for (int d = R / 2; d > 0; d /= 2) {
#pragma GCC unroll 32
      for (int i = 0; i < R; ++i) {
        if ((i & d) == 0) order(v[i], v[i + d]);
      }
    }
    merge_columns<2 * kGroup>(v);
  }
}

// Transposes rows [kFrom, kFrom + kLanes).
template <int kDistance, int kFrom, int R>
LAMELLA_INLINE void transpose(Vec32 (&v)[R]) {
  if constexpr (kDistance > 0) {
#pragma GCC unroll 32
    for (int i = kFrom; i < kFrom + kLanes; ++i) {
      if ((i & kDistance) != 0) continue;
      Vec32 a = v[i], b = v[i + kDistance];
      v[i] = blend<kDistance>(a, swap_lanes<kDistance>(b));
      v[i + kDistance] = blend<kDistance>(swap_lanes<kDistance>(a), b);
    }
    transpose<kDistance / 2, kFrom>(v);
  }
}
template <int kFrom, int R>
LAMELLA_INLINE void store_columns(Vec32 (&v)[R], uint32_t* words) {
  if constexpr (kFrom < R) {
    transpose<kLanes / 2, kFrom>(v);
#pragma GCC unroll 32
    for (int i = 0; i < kLanes; ++i) store(words + i * R + kFrom, v[kFrom + i]);
    store_columns<kFrom + kLanes>(v, words);
  }
}

// Interleaves the lanes of the lower or upper halves of a and b.
template <int kFirst, size_t... I>
LAMELLA_INLINE Vec32 interleave(Vec32 a, Vec32 b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (kFirst + I / 2 + (I % 2) * kLanes)...);
}
// Stores the columns of fewer rows than lanes, which log2(R) perfect shuffles transpose.
template <int kSpan, int R>
LAMELLA_INLINE void store_short_columns(Vec32 (&v)[R], uint32_t* words) {
  if constexpr (kSpan > 1) {
    using Lanes = std::make_index_sequence<kLanes>;
    Vec32 w[R];
#pragma GCC unroll 16
    for (int i = 0; i < R / 2; ++i) {
      w[2 * i] = interleave<0>(v[i], v[i + R / 2], Lanes());
      w[2 * i + 1] = interleave<kLanes / 2>(v[i], v[i + R / 2], Lanes());
    }
    store_short_columns<kSpan / 2>(w, words);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) store(words + i * kLanes, v[i]);
  }
}

template <int R>
void sort_block(uint32_t* words) {
  Vec32 v[R];
#pragma GCC unroll 32
  for (int i = 0; i < R; ++i) v[i] = load(words + i * kLanes);
  sort_rows<0, R>(v);
  merge_columns<2>(v);
  if constexpr (R >= kLanes) {
    store_columns<0>(v, words);
  } else {
    store_short_columns<R>(v, words);
  }
}

// ---- Merging blocks ----

// Merges sorted runs of `width` vectors by twos; `count` vectors in all.
void merge_runs(uint32_t* words, int64_t count, int64_t width) {
  for (int64_t start = 0; start + width < count; start += 2 * width) {
    uint32_t* run = words + start * kLanes;
    int64_t size = count - start < 2 * width ? count - start : 2 * width;
    for (int64_t i = 2 * width - size; i < width; ++i) {
      uint32_t *p = run + i * kLanes, *q = run + (2 * width - 1 - i) * kLanes;
      Vec32 low = load(p), high = swap_lanes<kLanes - 1>(load(q));
      order(low, high);
      store(p, low);
      store(q, swap_lanes<kLanes - 1>(high));
    }
    // Takes two steps at a time while two are left.
    int64_t d = width / 2;
    for (; d >= 2; d /= 4) {
      int64_t h = d / 2;
      for (int64_t block = 0; block < size; block += 2 * d) {
        for (int64_t i = block; i < block + h && i < size; ++i) {
          uint32_t* p = run + i * kLanes;
          if (i + d + h < size) {
            Vec32 a = load(p), b = load(p + h * kLanes), c = load(p + d * kLanes),
                  e = load(p + (d + h) * kLanes);
            order(a, c), order(b, e), order(a, b), order(c, e);
            store(p, a), store(p + h * kLanes, b), store(p + d * kLanes, c);
            store(p + (d + h) * kLanes, e);
          } else if (i + h < size) {
            Vec32 a = load(p), b = load(p + h * kLanes);
            if (i + d < size) {
              Vec32 c = load(p + d * kLanes);
              order(a, c);
              store(p + d * kLanes, c);
            }
            order(a, b);
            store(p, a), store(p + h * kLanes, b);
          }
        }
      }
    }
    for (int64_t i = 0; i < size; i += 2) {
      uint32_t* p = run + i * kLanes;
      Vec32 a = load(p);
      if (i + 1 < size) {
        Vec32 b = load(p + kLanes);
        if (d == 1) order(a, b);
        store(p + kLanes, merge_lanes<kLanes / 2>(b));
      }
      store(p, merge_lanes<kLanes / 2>(a));
    }
  }
}

void sort_short(uint32_t* words, int64_t n) {
  int64_t count = (n + kLanes - 1) / kLanes;
  for (int64_t at = 0; at < count; at += 32) {
    uint32_t* block = words + at * kLanes;
    int64_t rows = count - at;
    // The last block is filled up with the greatest words.
    int64_t filled = rows > 16 ? 32 : rows > 8 ? 16 : rows > 4 ? 8 : rows > 2 ? 4 : 2;
    for (int64_t i = n - at * kLanes; i < filled * kLanes; ++i) block[i] = ~uint32_t{0};
    if (rows > 16) {
      sort_block<32>(block);
    } else if (rows > 8) {
      sort_block<16>(block);
    } else if (rows > 4) {
      sort_block<8>(block);
    } else if (rows > 2) {
      sort_block<4>(block);
    } else {
      sort_block<2>(block);
    }
  }
  for (int64_t width = 32; width < count; width *= 2) merge_runs(words, count, width);
}

// ---- Pairs ----

constexpr int kMaxDigit = 13;
constexpr int64_t kMaxJoined = 512, kMaxShort = 2048, kMaxInserted = 16;

LAMELLA_INLINE int bits_of(uint32_t x) { return x == 0 ? 0 : 32 - __builtin_clz(x); }
LAMELLA_INLINE uint32_t key_of(uint64_t pair) { return static_cast<uint32_t>(pair >> 32); }

void insert_in_order(const uint64_t* from, int64_t n, uint64_t* to) {
  for (int64_t i = 0; i < n; ++i) {
    uint64_t pair = from[i];
    int64_t at = i;
    for (; at > 0 && to[at - 1] > pair; --at) to[at] = to[at - 1];
    to[at] = pair;
  }
}

// Stores n pairs, whose keys less `base` have `bits` bits, in order. Returns false, and stores
// nothing, if too many keys are equal in the bits that fit a word.
bool sort_short_pairs(const uint64_t* from, int64_t n, uint32_t base, int bits, uint64_t* to) {
  uint32_t words[kMaxShort + kWordsSpare];
  const int place_bits = bits_of(static_cast<uint32_t>(n - 1));
  const int dropped = bits + place_bits > 32 ? bits + place_bits - 32 : 0;
  const uint32_t mask = (uint32_t{1} << place_bits) - 1;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    words[i] = (key_of(from[i]) - base) >> dropped << place_bits | static_cast<uint32_t>(i);
  }
  sort_short(words, n);
  int64_t steps = dropped > 0 ? 4 * n : 0;
  for (int64_t i = 1; dropped > 0 && i < n; ++i) {
    const uint32_t word = words[i];
    if ((words[i - 1] ^ word) > mask) continue;
    const uint32_t key = key_of(from[word & mask]);
    int64_t at = i;
    for (; at > 0 && (words[at - 1] ^ word) <= mask && key_of(from[words[at - 1] & mask]) > key;
         --at) {
      words[at] = words[at - 1];
    }
    words[at] = word;
    steps -= i - at;
    if (steps < 0) return false;
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < n; ++i) to[i] = from[words[i] & mask];
  return true;
}

void sort_in_buckets(uint64_t* pairs, uint64_t* other, int64_t n, uint32_t base, int bits,
                     pairs_done_fn done, void* context) {
  int digit = bits_of(static_cast<uint32_t>(n)) - 4;
  digit = digit < 6 ? 6 : digit > kMaxDigit ? kMaxDigit : digit;
  digit = digit < bits ? digit : bits;
  const int shift = bits - digit;
  const int64_t buckets = int64_t{1} << digit;
  auto bucket_of = [&](uint64_t pair) { return (key_of(pair) - base) >> shift; };
  uint32_t ends[1 << kMaxDigit];
  for (int64_t b = 0; b < buckets; ++b) ends[b] = 0;
  for (int64_t i = 0; i < n; ++i) ++ends[bucket_of(pairs[i])];
  uint32_t sum = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    uint32_t count = ends[b];
    ends[b] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; ++i) other[ends[bucket_of(pairs[i])]++] = pairs[i];
  int64_t begin = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    int64_t size = ends[b] - begin, last = b;
    if (size == 0) continue;
    for (int64_t next = b + 1; next < buckets && ends[next] - begin <= kMaxJoined; ++next) {
      if (ends[next] - begin == size) continue;
      const int joined = shift + bits_of(static_cast<uint32_t>(next - b)) +
                         bits_of(static_cast<uint32_t>(ends[next] - begin - 1));
      if (joined > 32) break;
      size = ends[next] - begin;
      last = next;
    }
    uint64_t *from = other + begin, *to = pairs + begin;
    const uint32_t least = base + (static_cast<uint32_t>(b) << shift);
    const int left = shift + bits_of(static_cast<uint32_t>(last - b));
    if (size <= kMaxInserted) {
      insert_in_order(from, size, to);
    } else if (left == 0) {  // the keys are equal, and the positions in order
      for (int64_t i = 0; i < size; ++i) to[i] = from[i];
    } else if (size > kMaxShort || !sort_short_pairs(from, size, least, left, to)) {
      sort_in_buckets(from, to, size, least, left, nullptr, nullptr);
      for (int64_t i = 0; i < size; ++i) to[i] = from[i];
    }
    if (done != nullptr) done(context, begin, size);
    begin += size;
    b = last;
  }
}

bool sort_pairs_kernel(uint64_t* pairs, uint64_t* other, int64_t n, int bits, pairs_done_fn done,
                       void* context) {
  // With short vectors a sort by digits is faster.
  if constexpr (kLanes < 8) return false;
  if (n > 0) sort_in_buckets(pairs, other, n, 0, bits, done, context);
  return true;
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(sort_words_on, &sort_short);
LAMELLA_REGISTER_KERNEL(sort_pairs_on, &sort_pairs_kernel);

}  // namespace lamella::native
