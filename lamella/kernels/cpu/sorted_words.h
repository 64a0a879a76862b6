// Stores the elements that sorted words stand for, and their positions: ordering.cpp, Note
// [Ordering a line].
#pragma once
#include <algorithm>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/line_keys.h"

namespace lamella::native {

// Stores what sorted words stand for. Elements are recomputed from their keys, except NaN and
// zeros, because reading a long line in sorted order is slow.
template <class K>
struct SortedWords {
  const Line& line;
  const Packing<K>& packing;
  const uint64_t* words;
  const OrderedLine& out;

  // Whether store() takes this line: elements of K's size that are written side by side.
  bool lie_together() const {
    constexpr int64_t kBytes = sizeof(K);
    return line.kind.bytes == kBytes && out.value_stride == kBytes && out.index_stride == 1;
  }
  void store(int64_t begin, int64_t count) const {
    const SortedPairs pairs{words + begin, count, packing.least, packing.right};
    K* values = reinterpret_cast<K*>(out.values) + begin;
    int64_t* indices = out.indices + begin;
    if (!store_sorted_on(DeviceType::CPU, pairs, line.kind, values, indices)) return;
    for (int64_t i = 0; i < count; ++i) {
      const K magnitude = values[i] << 1 >> 1;
      if (magnitude != 0 && magnitude <= static_cast<K>(line.kind.infinity)) continue;
      values[i] = *reinterpret_cast<const K*>(line.element(indices[i]));
    }
  }
};
template <class K>
void store_words(const Line& line, const Packing<K>& packing, const uint64_t* words, int64_t k,
                 const OrderedLine& out) {
  const KeyKind kind = line.kind;
  const SortedWords<K> sorted{line, packing, words, out};
  if (sorted.lie_together()) {
    constexpr int64_t kPart = 1 << 16;
    for (int64_t at = 0; at < k; at += kPart) {
      sorted.store(at, std::min(kPart, k - at));
      check_interrupt();
    }
    return;
  }
  auto run = [&]<class U>(U) {
    constexpr U kSign = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
    auto invert = static_cast<U>(kind.invert), flip = static_cast<U>(kind.flip);
    for (int64_t i = 0; i < k; ++i) {
      if ((i & 0xfffff) == 0xfffff) check_interrupt();
      auto index = static_cast<int64_t>(words[i] & 0xffffffffu);
      auto key = static_cast<U>((static_cast<K>(words[i] >> 32) << packing.right) + packing.least);
      U bits = static_cast<U>(key ^ flip);
      if (kind.is_float) {
        key ^= invert;
        bits = static_cast<U>(key & kSign ? key ^ kSign : ~key);
        if (key == kSign || key == static_cast<U>(~U(0))) {
          bits = *reinterpret_cast<const U*>(line.element(index));
        }
      }
      *reinterpret_cast<U*>(out.values + i * out.value_stride) = bits;
      out.indices[i * out.index_stride] = index;
    }
  };
  if constexpr (sizeof(K) == 8) {
    run(uint64_t{});
  } else {
    switch (kind.bytes) {
      case 1:
        return run(uint8_t{});
      case 2:
        return run(uint16_t{});
      default:
        return run(uint32_t{});
    }
  }
}

}  // namespace lamella::native
