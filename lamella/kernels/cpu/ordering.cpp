// Putting a line of elements in order, and selecting from it.
//
// Note [Ordering a line]
//   Elements become keys (order_keys.h, Note [Keys]), and a key is packed with its position into
//   one word, so that no two words are equal and every sort is stable. Bits that all keys of the
//   line share are left out. Short lines have words of 32 bits and are sorted by a network in
//   vectors; where a key does not fit beside the position its lowest bits are dropped, and words
//   that are alike without them are put in order afterwards. Long lines have words of 64 bits,
//   which are sorted by their digits, the least significant first.
#include "lamella/kernels/cpu/ordering.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/digit_sort.h"
#include "lamella/kernels/cpu/simd/sort_words.h"

namespace lamella::native {

LAMELLA_DEFINE_DISPATCH(key_loops32_stub);
LAMELLA_DEFINE_DISPATCH(key_loops64_stub);
LAMELLA_DEFINE_DISPATCH(has_ties_stub);
LAMELLA_DEFINE_DISPATCH(store_picked_stub);
LAMELLA_DEFINE_DISPATCH(sort_words_stub);

KeyKind key_kind(ScalarType dtype, bool descending) {
  KeyKind kind{};
  kind.bytes = static_cast<uint8_t>(element_size(dtype));
  kind.is_float = is_floating_point(dtype);
  kind.is_bool = dtype == kBool;
  kind.infinity = dtype == kHalf       ? 0x7c00
                  : dtype == kBFloat16 ? 0x7f80
                  : dtype == kFloat    ? 0x7f800000
                                       : 0x7ff0000000000000;
  kind.invert = descending ? ~uint64_t{0} : 0;
  bool is_signed = dtype == kChar || dtype == kShort || dtype == kInt || dtype == kLong;
  kind.flip = is_signed ? uint64_t{1} << (kind.bytes * 8 - 1) : 0;
  kind.flip ^= kind.is_bool ? kind.invert & 1 : kind.invert >> (64 - 8 * kind.bytes);
  return kind;
}

uint64_t* OrderScratch::reserve(Tensor& words, int64_t n) {
  if (!words.defined() || words.numel() < n)
    words = new_tensor({n}, kLong, Device(DeviceType::CPU));
  return static_cast<uint64_t*>(words.data_ptr());
}

namespace {

constexpr int64_t kShort = 8192;  // elements of a line that the network may sort
constexpr int64_t kBlock = 1024;  // keys that are made at a time of a longer line
constexpr int64_t kMostWords = INT64_C(1) << 32;

template <class F>
decltype(auto) visit_key(const Line& line, F&& f) {
  if (line.kind.bytes == 8) return f(uint64_t{});
  return f(uint32_t{});
}
template <class K>
int bits_of(K x) {
  return x == 0
             ? 0
             : static_cast<int>(sizeof(K)) * 8 -
                   (sizeof(K) == 8 ? __builtin_clzll(x) : __builtin_clz(static_cast<unsigned>(x)));
}

// f(keys, count, position of the first) for blocks of the line's elements [begin, end), until it
// returns false.
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

// What is left of keys once the bits that all of them share are gone.
template <class K>
struct Packing {
  K least;
  int right;  // low bits that are alike in all keys
  int bits;   // that are left
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

// ---- Storing ----

// Element at(i) of the line, for i < k.
template <class F>
void store(const Line& line, int64_t k, const OrderedLine& out, F&& at) {
  auto run = [&]<class U>(U) {
    for (int64_t i = 0; i < k; ++i) {
      if ((i & 0xfffff) == 0xfffff) check_interrupt();
      int64_t index = at(i);
      *reinterpret_cast<U*>(out.values + i * out.value_stride) =
          *reinterpret_cast<const U*>(line.element(index));
      out.indices[i * out.index_stride] = index;
    }
  };
  visit_bytes(line.kind.bytes, [&](auto tag) { run(type_of<decltype(tag)>{}); });
}

// The same of sorted words, from which elements follow but for NaN and zeros: a long line is not
// read in that order.
template <class K>
void store_words(const Line& line, const Packing<K>& packing, const uint64_t* words, int64_t k,
                 const OrderedLine& out) {
  const KeyKind kind = line.kind;
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

// ---- Short lines ----

// Puts words that are alike above the mask in the order of their keys. Gives up, false, where
// that would take long.
template <class K>
bool order_ties(uint32_t* words, int64_t n, uint32_t mask, const K* keys) {
  int64_t steps = 8 * n;
  for (int64_t i = 1; i < n; ++i) {
    uint32_t word = words[i];
    if ((words[i - 1] ^ word) > mask) continue;
    K key = keys[word & mask];
    int64_t at = i;
    for (; at > 0 && (words[at - 1] ^ word) <= mask && keys[words[at - 1] & mask] > key; --at) {
      words[at] = words[at - 1];
    }
    words[at] = word;
    steps -= i - at;
    if (steps < 0) return false;
  }
  return true;
}

// False: nothing is stored, as too many keys are alike in what fits a word.
template <class K>
bool order_short(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch) {
  const KeyLoops<K>& loops = key_loops<K>();
  int64_t n = line.n;
  constexpr int64_t kVector = 16;
  // The last key is repeated up to whole vectors, and once more for the keys' neighbours.
  int64_t padded = (n + kVector - 1) / kVector * kVector;
  constexpr int64_t kRoom = kShort + kVector;
  auto* keys = reinterpret_cast<K*>(
      scratch.first(kRoom * static_cast<int64_t>(sizeof(K)) / 8 + (kShort + kWordsSpare) / 2));
  auto* words = reinterpret_cast<uint32_t*>(keys + kRoom);
  loops.read(line.kind, line.from, line.stride, n, keys);
  std::fill(keys + n, keys + padded + 1, keys[n - 1]);
  KeyBounds<K> bounds = loops.bounds(keys, padded + 1);
  if (bounds.ascending) {
    store(line, k, out, [](int64_t i) { return i; });
    return true;
  }
  Packing<K> packing = packing_of(bounds);
  int index_bits = bits_of(static_cast<uint32_t>(n - 1));
  uint32_t mask = (1u << index_bits) - 1;
  int dropped = std::max(0, packing.bits + index_bits - 32);
  // A long line has too many keys that are alike but for many low bits.
  if (dropped > 0 && n > kShort / 2) return false;
  loops.pack(keys, padded, packing.least, packing.right + dropped, index_bits, words);
  sort_words_stub(DeviceType::CPU, words, n);
  if (dropped > 0 && has_ties_stub(DeviceType::CPU, words, n, mask) &&
      !order_ties(words, n, mask, keys)) {
    return false;
  }
  if (line.stride == line.kind.bytes && out.value_stride == line.stride && out.index_stride == 1) {
    store_picked_stub(DeviceType::CPU, words, k, mask, line.kind.bytes, line.from, out.values,
                      out.indices);
  } else {
    store(line, k, out, [&](int64_t i) { return static_cast<int64_t>(words[i] & mask); });
  }
  return true;
}

// ---- Long lines ----

// Few different keys: each element goes straight to its place, after those with lesser keys and
// after its equals that come before it.
constexpr int kFewBits = 11;
template <class K>
void order_by_counting(const Line& line, const Packing<K>& packing, const OrderedLine& out) {
  int64_t next[1 << kFewBits] = {};
  auto bucket_of = [&](K key) {
    return static_cast<size_t>((key - packing.least) >> packing.right);
  };
  for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t) {
    for (int64_t i = 0; i < count; ++i) ++next[bucket_of(keys[i])];
    return true;
  });
  int64_t sum = 0;
  for (int64_t& place : next) sum += std::exchange(place, sum);
  auto run = [&]<class U>(U) {
    for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
      for (int64_t i = 0; i < count; ++i) {
        int64_t place = next[bucket_of(keys[i])]++;
        *reinterpret_cast<U*>(out.values + place * out.value_stride) =
            *reinterpret_cast<const U*>(line.element(at + i));
        out.indices[place * out.index_stride] = at + i;
      }
      return true;
    });
  };
  visit_bytes(line.kind.bytes, [&](auto tag) { run(type_of<decltype(tag)>{}); });
}

// Puts words that are alike above their lower half in the order of the `dropped` low bits of their
// keys, which no longer fit in.
template <class K>
void order_long_ties(const Line& line, const Packing<K>& packing, int dropped, uint64_t* words,
                     uint64_t* other, int64_t n) {
  const KeyLoops<K>& loops = key_loops<K>();
  K low = static_cast<K>((K(1) << dropped) - 1);
  for (int64_t begin = 0; begin < n;) {
    int64_t end = begin + 1;
    while (end < n && words[end] >> 32 == words[begin] >> 32) ++end;
    if (end - begin > 1) {
      for (int64_t i = begin; i < end; ++i) {
        uint64_t index = words[i] & 0xffffffffu;
        K key;
        loops.read(line.kind, line.element(static_cast<int64_t>(index)), line.stride, 1, &key);
        words[i] =
            static_cast<uint64_t>((key - packing.least) >> packing.right & low) << 32 | index;
      }
      if (end - begin < 256) {
        std::sort(words + begin, words + end);
      } else {
        uint64_t* sorted = sort_by_digits(words + begin, other, end - begin, dropped);
        if (sorted == other) std::copy(other, other + (end - begin), words + begin);
      }
      count_steps(end - begin);
    }
    begin = end;
  }
}

template <class K>
void order_long(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch) {
  int64_t n = line.n;
  KeyBounds<K> bounds = bounds_of<K>(line);
  if (bounds.ascending) {
    store(line, k, out, [](int64_t i) { return i; });
    return;
  }
  if (n > kMostWords) {  // a position does not fit in half a word
    std::vector<KeyAndIndex<K>> all(static_cast<size_t>(n));
    for_each_block<K>(line, 0, n, [&](const K* keys, int64_t count, int64_t at) {
      for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(at + i)] = {keys[i], at + i};
      return true;
    });
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      count_steps(1);
      return a < b;
    });
    store(line, k, out, [&](int64_t i) { return all[static_cast<size_t>(i)].index; });
    return;
  }
  Packing<K> packing = packing_of(bounds);
  if (k == n && packing.bits <= kFewBits && (get_num_threads() == 1 || n < kGrainSize)) {
    return order_by_counting(line, packing, out);
  }
  int dropped = std::max(0, packing.bits - 32);
  uint64_t* words =
      k == n && out.index_stride == 1 ? reinterpret_cast<uint64_t*>(out.indices) : scratch.first(n);
  uint64_t* other = scratch.second(n);
  parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
    for_each_block<K>(line, begin, end, [&](const K* keys, int64_t count, int64_t at) {
      for (int64_t i = 0; i < count; ++i) {
        auto part = static_cast<uint64_t>((keys[i] - packing.least) >> packing.right >> dropped);
        words[at + i] = part << 32 | static_cast<uint64_t>(at + i);
      }
      return true;
    });
  });
  uint64_t* sorted = sort_by_digits(words, other, n, packing.bits - dropped);
  if (dropped == 0) return store_words(line, packing, sorted, k, out);
  order_long_ties(line, packing, dropped, sorted, sorted == words ? other : words, n);
  store(line, k, out, [&](int64_t i) { return static_cast<int64_t>(sorted[i] & 0xffffffffu); });
}

// ---- The first few ----

// Whether it pays to look for the first k of n alone.
bool are_few(int64_t k, int64_t n) {
  return n > kKeyLanes && (k <= kKeyLanes / 4 ? k <= n / 8 : n > kShort / 4 && k <= n / 64) &&
         k < (1 << 22);
}

template <class K>
void order_few(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch) {
  const KeyLoops<K>& loops = key_loops<K>();
  auto limit = static_cast<K>(~K(0));  // no key above it is among the first k
  int64_t room = std::max<int64_t>(4 * k, 256), kept = 0;
  auto* found = reinterpret_cast<KeyAndIndex<K>*>(scratch.first(
      (room + kBlock + 1) * static_cast<int64_t>(sizeof(KeyAndIndex<K>) / sizeof(uint64_t))));
  bool is_complete = false;  // nothing that follows is among the first k
  auto keep = [&] {
    if (kept > k) {
      std::nth_element(found, found + k - 1, found + kept);
      kept = k;
    }
    // Among equals those that came first stay.
    K last = found[k - 1].key;
    if (last == 0) is_complete = true;
    limit = static_cast<K>(last - 1);
  };
  for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
    if (at == 0 && k <= kKeyLanes / 4) {
      K lanes[kKeyLanes + (sizeof(K) == 4 ? kWordsSpare : 0)];
      loops.least_by_lane(keys, count, lanes);
      if constexpr (sizeof(K) == 4) {
        sort_words_stub(DeviceType::CPU, lanes, kKeyLanes);
      } else {
        std::nth_element(lanes, lanes + k - 1, lanes + kKeyLanes);
      }
      limit = lanes[k - 1];
    }
    kept += loops.append(keys, count, limit, at, found + kept);
    if (kept >= room) keep();
    return !is_complete;
  });
  if (kept > k) std::nth_element(found, found + k - 1, found + kept);
  std::sort(found, found + k);
  store(line, k, out, [&](int64_t i) { return found[i].index; });
}

// ---- The k-th ----

template <class K>
struct Selected {
  K key;
  int64_t before;      // how many are less
  int64_t index = -1;  // where it is, if that is known
};

// The key at position k is found in the bucket of leading bits that holds it, again and again.
template <class K>
Selected<K> select_key(const Line& line, int64_t k, OrderScratch& scratch) {
  const KeyLoops<K>& loops = key_loops<K>();
  int64_t n = line.n, before = 0;
  K* keys = nullptr;
  KeyBounds<K> bounds;
  constexpr int64_t kNetwork = kShort / 4;  // beyond it, counting is faster
  if (n <= kNetwork) {
    keys = reinterpret_cast<K*>(scratch.first(kNetwork + kWordsSpare));
    loops.read(line.kind, line.from, line.stride, n, keys);
  } else {
    bounds = bounds_of<K>(line);
    if (bounds.ascending) return {K{}, 0, k};
  }
  while (true) {
    if (keys != nullptr) {
      bool by_network = sizeof(K) == 4 && n <= kNetwork;
      if (by_network || n <= kKeyLanes) {
        if (by_network) {
          sort_words_stub(DeviceType::CPU, reinterpret_cast<uint32_t*>(keys), n);
        } else {
          std::sort(keys, keys + n);
        }
        K key = keys[k];
        return {key, before + (std::lower_bound(keys, keys + k, key) - keys), -1};
      }
      bounds = loops.bounds(keys, n);
    }
    if (bounds.least == bounds.most) return {bounds.least, before, -1};
    Packing<K> packing = packing_of(bounds);
    int digit = std::min(packing.bits, n <= 8 * kNetwork ? 8 : 11);
    int shift = packing.right + packing.bits - digit;
    int64_t counts[1 << 11];
    std::fill(counts, counts + (1 << digit), 0);
    auto bucket_of = [&](K key) { return static_cast<int64_t>((key - packing.least) >> shift); };
    auto count_keys = [&](const K* some, int64_t count, int64_t) {
      for (int64_t i = 0; i < count; ++i) ++counts[bucket_of(some[i])];
      return true;
    };
    if (keys != nullptr) {
      count_keys(keys, n, 0);
    } else {
      for_each_block<K>(line, 0, n, count_keys);
    }
    int64_t bucket = 0;
    for (; k >= counts[bucket]; ++bucket) {
      k -= counts[bucket];
      before += counts[bucket];
    }
    int64_t size = counts[bucket], kept = 0;
    K* into = keys;
    auto take_keys = [&](const K* some, int64_t count, int64_t) {
      for (int64_t i = 0; i < count; ++i) {
        K key = some[i];
        into[kept] = key;
        kept += bucket_of(key) == bucket ? 1 : 0;
      }
      return kept < size;
    };
    if (keys != nullptr) {
      take_keys(keys, n, 0);
    } else {
      into = reinterpret_cast<K*>(
          scratch.first((size + kBlock + kWordsSpare) * static_cast<int64_t>(sizeof(K)) / 8 + 1));
      for_each_block<K>(line, 0, n, take_keys);
    }
    keys = into;
    n = size;
  }
}

// Where the key stands for the `which`-th time.
template <class K>
int64_t find_key(const Line& line, K key, int64_t which) {
  const KeyLoops<K>& loops = key_loops<K>();
  int64_t index = 0;
  for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
    int64_t here = loops.count(keys, count, key);
    if (which >= here) {
      which -= here;
      return true;
    }
    for (int64_t i = 0;; ++i) {
      if (keys[i] == key && which-- == 0) {
        index = at + i;
        return false;
      }
    }
  });
  return index;
}

}  // namespace

Lines::Lines(std::initializer_list<const Tensor*> tensors, int64_t dim) {
  const Tensor& self = **tensors.begin();
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == dim) {
      size_ = self.size(d);
      continue;
    }
    sizes_.push_back(self.size(d));
    count_ *= self.size(d);
  }
  size_t t = 0;
  for (const Tensor* tensor : tensors) {
    along_[t] = tensor->dim() == 0 ? 1 : tensor->strides()[static_cast<size_t>(dim)];
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (d != dim) strides_[t].push_back(tensor->strides()[static_cast<size_t>(d)]);
    }
    ++t;
  }
  for (; t < kMostTensors; ++t) strides_[t] = Dims(sizes_.size(), 0);
}

void order_line(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch) {
  visit_key(line, [&](auto tag) {
    using K = decltype(tag);
    if (are_few(k, line.n)) return order_few<K>(line, k, out, scratch);
    if (line.n <= kShort && order_short<K>(line, k, out, scratch)) return;
    order_long<K>(line, k, out, scratch);
  });
}

int64_t select_in_line(const Line& line, int64_t k, OrderScratch& scratch) {
  return visit_key(line, [&](auto tag) {
    using K = decltype(tag);
    Selected<K> selected = select_key<K>(line, k, scratch);
    if (selected.index >= 0) return selected.index;
    return find_key<K>(line, selected.key, k - selected.before);
  });
}

int64_t count_nan(const Line& line) {
  if (!line.kind.is_float) return 0;
  return visit_key(line, [&](auto tag) {
    using K = decltype(tag);
    int64_t nans = 0;
    for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t) {
      nans += key_loops<K>().count(keys, count, static_cast<K>(nan_key(line.kind)));
      return true;
    });
    return nans;
  });
}

}  // namespace lamella::native
