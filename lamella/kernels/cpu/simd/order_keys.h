// Conversion of elements to sort keys, and loops over keys, one set for each CPU capability.
//
// Note [Keys]
//   Each element becomes an unsigned number, its key, whose order is the wanted one. Integers have
//   their sign bit flipped; floating-point numbers become their bits, all flipped if negative, with
//   NaN above all others and both zeros equal; a descending order inverts all bits. So a few loops
//   over keys of 32 and of 64 bits serve all dtypes.
#pragma once
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/dispatch_stub.h"

namespace lamella::native {

// How the keys of a dtype's elements are computed.
struct KeyKind {
  uint8_t bytes;  // of an element
  bool is_float;
  bool is_bool;
  uint64_t infinity;  // its bits, for floating point
  uint64_t flip;      // bits of an integer that are flipped
  uint64_t invert;    // all bits for a descending order, else none
};
KeyKind key_kind(ScalarType dtype, bool descending);

// The key of the element with these bits; U is the unsigned type of the element's size, or wider.
template <class U, bool is_float>
inline U key_of(U bits, const KeyKind& kind) {
  if constexpr (is_float) {
    constexpr U kSign = U(1) << (sizeof(U) * 8 - 1);
    U magnitude = static_cast<U>(bits & ~kSign);
    U key = static_cast<U>(bits & kSign ? ~bits : bits | kSign);
    key = magnitude == 0 ? kSign : key;
    key = magnitude > static_cast<U>(kind.infinity) ? static_cast<U>(~U(0)) : key;
    return static_cast<U>(key ^ static_cast<U>(kind.invert));
  } else {
    return static_cast<U>(bits ^ static_cast<U>(kind.flip));
  }
}
// The keys of NaN and of both zeros, from which the element's bits cannot be recovered.
inline uint64_t nan_key(const KeyKind& kind) {
  return (~uint64_t{0} ^ kind.invert) >> (64 - 8 * kind.bytes);
}

template <class K>
struct KeyBounds {
  K least, most;
  K varying;       // bits in which keys differ from the first one
  bool ascending;  // no key is less than the one before
};

// A key and its position in its line.
template <class K>
struct KeyAndIndex {
  K key;
  int64_t index;
  bool operator<(const KeyAndIndex& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

inline constexpr int64_t kKeyLanes = 64;

template <class K>
struct KeyLoops {
  // Keys of n elements that are `stride` bytes apart. K has 32 bits, or 64 for elements of 8 bytes.
  void (*read)(const KeyKind& kind, const char* from, int64_t stride, int64_t n, K* keys);
  // The least and greatest key, and whether the keys ascend; n > 0.
  KeyBounds<K> (*bounds)(const K* keys, int64_t n);
  // words[i] = (keys[i] - least) >> right << left | i.
  void (*pack)(const K* keys, int64_t n, K least, int right, int left, uint32_t* words);
  // words[i] = (keys[i] - least) >> right << 32 | (first + i).
  void (*pair)(const K* keys, int64_t n, K least, int right, int64_t first, uint64_t* words);
  // lanes[i] becomes the least of the keys whose position is i modulo kKeyLanes, or all ones.
  void (*least_by_lane)(const K* keys, int64_t n, K* lanes);
  // Appends keys up to the limit with their positions, counted from `first`. Returns how many.
  // `out` has room for one more.
  int64_t (*append)(const K* keys, int64_t n, K limit, int64_t first, KeyAndIndex<K>* out);
  int64_t (*count)(const K* keys, int64_t n, K key);
  // found[i] = the number of the n < 2^31 sorted keys that are less than values[i].
  void (*search)(const K* sorted, int64_t n, const K* values, int64_t count, int64_t* found);
};
using key_loops32_fn = const KeyLoops<uint32_t>& (*)();
using key_loops64_fn = const KeyLoops<uint64_t>& (*)();
LAMELLA_KERNEL(key_loops32_fn, key_loops32_on);
LAMELLA_KERNEL(key_loops64_fn, key_loops64_on);

template <class K>
inline const KeyLoops<K>& key_loops() {
  if constexpr (sizeof(K) == 4) {
    return key_loops32_on(DeviceType::CPU);
  } else {
    return key_loops64_on(DeviceType::CPU);
  }
}

// True if two adjacent sorted words are equal above the bits of `mask`; fewer than 2^31 words.
using has_ties_fn = bool (*)(const uint32_t* words, int64_t n, uint32_t mask);
LAMELLA_KERNEL(has_ties_fn, has_ties_on);

// Stores the elements of `from`, of `bytes` bytes each, at positions words[i] & mask, and these
// positions.
using store_picked_fn = void (*)(const uint32_t* words, int64_t n, uint32_t mask, int bytes,
                                 const char* from, char* values, int64_t* indices);
LAMELLA_KERNEL(store_picked_fn, store_picked_on);

// Sorted words of which each is a key, less `least` and shifted to the right, above a position.
struct SortedPairs {
  const uint64_t* words;
  int64_t n;
  uint64_t least;
  int right;
};
// Stores elements of 4 or 8 bytes that have these keys, and their positions, which may lie where
// the words do. Returns true if some are NaN or zeros, which are stored as such, but not bit by
// bit.
using store_sorted_fn = bool (*)(const SortedPairs& pairs, const KeyKind& kind, void* values,
                                 int64_t* indices);
LAMELLA_KERNEL(store_sorted_fn, store_sorted_on);

}  // namespace lamella::native
