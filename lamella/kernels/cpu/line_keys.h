// Computes the sort keys of a line block by block, and how to pack them into fewer bits by dropping
// the bits that all keys share.
#pragma once
#include <algorithm>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/ordering.h"

namespace lamella::native {

inline constexpr int64_t kBlock = 1024;  // keys that are computed at a time
template <class F>
inline decltype(auto) visit_key(const Line& line, F&& f) {
  if (line.kind.bytes == 8) return f(uint64_t{});
  return f(uint32_t{});
}
template <class K>
inline int bits_of(K x) {
  return x == 0
             ? 0
             : static_cast<int>(sizeof(K)) * 8 -
                   (sizeof(K) == 8 ? __builtin_clzll(x) : __builtin_clz(static_cast<unsigned>(x)));
}

// Calls f(keys, count, position of the first key) for blocks of the line's elements [begin, end)
// until it returns false.
template <class K, class F>
void for_each_block(const Line& line, int64_t begin, int64_t end, F&& f) {
  const KeyLoops<K>& loops = key_loops<K>();
  K keys[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    int64_t count = std::min(kBlock, end - at);
    loops.read(line.kind, line.element(at), line.stride, count, keys);
    if (!f(static_cast<const K*>(keys), count, at)) return;
    count_steps(count);
  }
}

// How keys are packed: (key - least) >> right has `bits` bits.
template <class K>
struct Packing {
  K least;
  int right;  // low bits that are equal in all keys
  int bits;   // bits that are left
};
template <class K>
Packing<K> packing_of(const KeyBounds<K>& bounds) {
  Packing<K> packing{bounds.least, 0, 0};
  if (bounds.varying == 0) return packing;
  packing.right = sizeof(K) == 8 ? __builtin_ctzll(bounds.varying)
                                 : __builtin_ctz(static_cast<unsigned>(bounds.varying));
  packing.bits = bits_of(static_cast<K>((bounds.most - bounds.least) >> packing.right));
  return packing;
}

template <class K>
KeyBounds<K> bounds_of(const Line& line) {
  const KeyLoops<K>& loops = key_loops<K>();
  KeyBounds<K> all{};
  K first{}, last{};
  for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
    KeyBounds<K> here = loops.bounds(keys, count);
    if (at == 0) {
      all = here;
      first = keys[0];
    } else {
      all.least = std::min(all.least, here.least);
      all.most = std::max(all.most, here.most);
      all.varying |= here.varying | static_cast<K>(keys[0] ^ first);
      all.ascending = all.ascending && here.ascending && last <= keys[0];
    }
    last = keys[count - 1];
    return true;
  });
  return all;
}

}  // namespace lamella::native
