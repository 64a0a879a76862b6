// Sorting a line of elements, and selecting from it.
//
// Note [Ordering a line]
//   Elements become keys (order_keys.h, Note [Keys]), and a key is packed with its position into
//   one word, so that no two words are equal and every sort is stable. Bits that all keys of the
//   line share are left out. Short lines have words of 32 bits and are sorted by a sorting network
//   in vectors; if a key does not fit beside the position, its lowest bits are dropped, and words
//   that are equal without them are ordered afterwards. Long lines have words of 64 bits, which are
//   sorted in vectors where there is such a sort, else by their digits, the least significant
//   first.
#include "lamella/kernels/cpu/ordering.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/digit_sort.h"
#include "lamella/kernels/cpu/line_keys.h"
#include "lamella/kernels/cpu/simd/sort_long_words.h"
#include "lamella/kernels/cpu/simd/sort_words.h"
#include "lamella/kernels/cpu/sorted_words.h"

namespace lamella::native {

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

constexpr int64_t kShort = 8192;          // most elements of a line that the network sorts
constexpr int64_t kMaxBuckets = 1 << 18;  // most elements of a line that is sorted in buckets
constexpr int64_t kMaxWords = INT64_C(1) << 32;

// ---- Storing ----

// Stores the k elements at positions at(0), ..., at(k - 1) of the line.
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

// ---- Short lines ----

// Orders words that are equal above the mask by their keys. Returns false if that would take long.
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

// Returns false, and stores nothing, if too many keys are equal in the bits that fit a word.
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
  // A long line is likely to have too many keys that differ only in the dropped bits.
  if (dropped > 0 && n > kShort / 2) return false;
  loops.pack(keys, padded, packing.least, packing.right + dropped, index_bits, words);
  sort_words_on(DeviceType::CPU, words, n);
  if (dropped > 0 && has_ties_on(DeviceType::CPU, words, n, mask) &&
      !order_ties(words, n, mask, keys)) {
    return false;
  }
  if (line.stride == line.kind.bytes && out.value_stride == line.stride && out.index_stride == 1) {
    store_picked_on(DeviceType::CPU, words, k, mask, line.kind.bytes, line.from, out.values,
                    out.indices);
  } else {
    store(line, k, out, [&](int64_t i) { return static_cast<int64_t>(words[i] & mask); });
  }
  return true;
}

// ---- Long lines ----

// Counting sort for keys of few bits: the position of each element goes directly to its place,
// after those with lesser keys and after equal ones that come before it. Elements with equal keys
// are identical, except for zeros and NaN, so they are written bucket by bucket.
constexpr int kMaxSmallBits = 11, kMaxCountingBits = 16;
template <class K>
void order_by_counting(const Line& line, const Packing<K>& packing, const OrderedLine& out,
                       OrderScratch& scratch) {
  const KeyKind kind = line.kind;
  // Two parts of the line are counted separately, because consecutive increments of one counter may
  // wait for each other: next[bucket * 2 + part].
  const auto buckets = size_t{1} << packing.bits, counters = 2 * buckets;
  auto* next = reinterpret_cast<uint32_t*>(scratch.second(static_cast<int64_t>(counters + 1) / 2));
  auto* numbers = reinterpret_cast<uint16_t*>(scratch.first(line.n / 4 + 1));
  std::fill(next, next + counters, 0);
  for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
    for (int64_t i = 0; i < count; ++i) {
      numbers[at + i] = static_cast<uint16_t>((keys[i] - packing.least) >> packing.right);
    }
    return true;
  });
  const int64_t half = line.n / 2;
  auto each = [&](auto&& f) {
    for (int64_t at = 0; at < half; at += kBlock) {
      for (int64_t i = at; i < std::min(half, at + kBlock); ++i) {
        f(next[2 * size_t{numbers[i]}], i);
        f(next[2 * size_t{numbers[half + i]} + 1], half + i);
      }
      count_steps(kBlock);
    }
    if (line.n % 2 != 0) f(next[2 * size_t{numbers[line.n - 1]} + 1], line.n - 1);
  };
  each([](uint32_t& counter, int64_t) { ++counter; });
  uint32_t sum = 0;
  for (size_t i = 0; i < counters; ++i) sum += std::exchange(next[i], sum);
  int64_t* indices = out.indices;
  if (out.index_stride == 1) {
    each([&](uint32_t& place, int64_t index) { indices[place++] = index; });
  } else {
    each([&](uint32_t& place, int64_t index) { indices[place++ * out.index_stride] = index; });
  }
  auto run = [&]<class U>(U) {
    constexpr auto kSign = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
    auto* values = out.values;
    int64_t place = 0;
    for (size_t bucket = 0; bucket < buckets; ++bucket) {
      // Each counter has arrived at the first place of the next one.
      const int64_t end = next[2 * bucket + 1];
      auto key = static_cast<U>((static_cast<K>(bucket) << packing.right) + packing.least);
      auto value = static_cast<U>(key ^ static_cast<U>(kind.flip));
      bool is_one_value = true;
      if (kind.is_float) {
        key ^= static_cast<U>(kind.invert);
        value = static_cast<U>(key & kSign ? key ^ kSign : ~key);
        is_one_value = key != kSign && key != static_cast<U>(~U(0));
      }
      for (; place < end; ++place, values += out.value_stride) {
        if (!is_one_value) {
          value = *reinterpret_cast<const U*>(line.element(indices[place * out.index_stride]));
        }
        *reinterpret_cast<U*>(values) = value;
      }
    }
  };
  visit_bytes(kind.bytes, [&](auto tag) {
    using U = type_of<decltype(tag)>;
    if constexpr (std::is_integral_v<U>) run(U{});
  });
}

// Sorts words whose lower halves are ascending positions by the lowest `bits` bits of their upper
// halves. Returns the sorted array, which is `words` or `other`.
uint64_t* sort_pairs(uint64_t* words, uint64_t* other, int64_t n, int bits) {
  // Parts this long are sorted without a question for interrupts.
  constexpr int64_t kPart = 1 << 24;
  if (n <= kMaxBuckets && bits > kMaxSmallBits &&
      sort_pairs_on(DeviceType::CPU, words, other, n, bits, nullptr, nullptr)) {
    check_interrupt();
    return words;
  }
  if (bits <= kMaxSmallBits || !sort_long_words_on(DeviceType::CPU, words, 0)) {
    return sort_by_digits(words, other, n, bits);
  }
  parallel_for(0, (n + kPart - 1) / kPart, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * kPart; at < std::min(n, end * kPart); at += kPart) {
      sort_long_words_on(DeviceType::CPU, words + at, std::min(kPart, n - at));
      check_interrupt();
    }
  });
  for (int64_t width = kPart; width < n; width *= 2) {
    parallel_for(0, (n + 2 * width - 1) / (2 * width), 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * 2 * width; at < std::min(n, end * 2 * width); at += 2 * width) {
        int64_t middle = std::min(n, at + width), last = std::min(n, at + 2 * width);
        std::merge(words + at, words + middle, words + middle, words + last, other + at);
        check_interrupt();
      }
    });
    std::swap(words, other);
  }
  return words;
}

// Orders words with equal upper halves by the `dropped` low bits of their keys, which did not fit
// into the words.
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
  if (n > kMaxWords) {  // a position does not fit in half a word
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
  bool are_few =
      packing.bits <= kMaxSmallBits || (packing.bits <= kMaxCountingBits && n >> packing.bits >= 8);
  if (k == n && are_few && (get_num_threads() == 1 || n < kGrainSize)) {
    return order_by_counting(line, packing, out, scratch);
  }
  int dropped = std::max(0, packing.bits - 32);
  uint64_t* words =
      k == n && out.index_stride == 1 ? reinterpret_cast<uint64_t*>(out.indices) : scratch.first(n);
  uint64_t* other = scratch.second(n);
  parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
    for_each_block<K>(line, begin, end, [&](const K* keys, int64_t count, int64_t at) {
      key_loops<K>().pair(keys, count, packing.least, packing.right + dropped, at, words + at);
      return true;
    });
  });
  const SortedWords<K> in_order{line, packing, words, out};
  if (dropped == 0 && k == n && n <= kMaxBuckets && in_order.lie_together()) {
    auto done = [](void* context, int64_t begin, int64_t count) {
      static_cast<const SortedWords<K>*>(context)->store(begin, count);
    };
    void* context = const_cast<SortedWords<K>*>(&in_order);
    if (sort_pairs_on(DeviceType::CPU, words, other, n, packing.bits, done, context)) {
      return check_interrupt();
    }
  }
  uint64_t* sorted = sort_pairs(words, other, n, packing.bits - dropped);
  if (dropped == 0) return store_words(line, packing, sorted, k, out);
  order_long_ties(line, packing, dropped, sorted, sorted == words ? other : words, n);
  store(line, k, out, [&](int64_t i) { return static_cast<int64_t>(sorted[i] & 0xffffffffu); });
}

// ---- The first few ----

// True if finding only the first k of n is faster than sorting.
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
  bool is_complete = false;  // no later element is among the first k
  auto keep = [&] {
    if (kept > k) {
      std::nth_element(found, found + k - 1, found + kept);
      kept = k;
    }
    // Among equal elements, those that come first are kept.
    K last = found[k - 1].key;
    if (last == 0) is_complete = true;
    limit = static_cast<K>(last - 1);
  };
  for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
    if (at == 0 && k <= kKeyLanes / 4) {
      K lanes[kKeyLanes + (sizeof(K) == 4 ? kWordsSpare : 0)];
      loops.least_by_lane(keys, count, lanes);
      if constexpr (sizeof(K) == 4) {
        sort_words_on(DeviceType::CPU, lanes, kKeyLanes);
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
  int64_t before;      // number of lesser elements
  int64_t index = -1;  // its position in the line, or -1 if that is not known
};

// Finds the key at position k by repeatedly narrowing to the bucket of leading bits that holds it.
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
          sort_words_on(DeviceType::CPU, reinterpret_cast<uint32_t*>(keys), n);
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
    // Two tables, because consecutive increments of one counter would wait for each other.
    int64_t counts[1 << 11], others[1 << 11];
    std::fill(counts, counts + (1 << digit), 0);
    std::fill(others, others + (1 << digit), 0);
    auto bucket_of = [&](K key) { return static_cast<int64_t>((key - packing.least) >> shift); };
    auto count_keys = [&](const K* some, int64_t count, int64_t) {
      int64_t i = 0;
      for (; i + 1 < count; i += 2) {
        ++counts[bucket_of(some[i])];
        ++others[bucket_of(some[i + 1])];
      }
      if (i < count) ++counts[bucket_of(some[i])];
      return true;
    };
    if (keys != nullptr) {
      count_keys(keys, n, 0);
    } else {
      for_each_block<K>(line, 0, n, count_keys);
    }
    for (int b = 0; b < 1 << digit; ++b) counts[b] += others[b];
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

// The position of the `which`-th occurrence of the key.
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

namespace {

// True if extracting the first k of n before sorting them is faster.
bool are_part(int64_t k, int64_t n) { return n > kShort && k <= n / 4; }

// Copies the elements up to the one at position k - 1 in the line's order, and sorts that shorter
// line. Returns false, and stores nothing, if too many are equal.
template <class K>
bool order_part(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch) {
  Selected<K> last = select_key<K>(line, k - 1, scratch);
  if (last.index >= 0) return false;  // the line is in order
  const KeyLoops<K>& loops = key_loops<K>();
  const int64_t bytes = line.kind.bytes, most = 2 * k;
  auto found =
      std::make_unique_for_overwrite<KeyAndIndex<K>[]>(static_cast<size_t>(most + kBlock + 1));
  int64_t kept = 0;
  for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
    kept += loops.append(keys, count, last.key, at, found.get() + kept);
    return kept <= most;
  });
  if (kept > most) return false;
  std::vector<char> values(static_cast<size_t>(kept * bytes));
  for (int64_t i = 0; i < kept; ++i) {
    std::memcpy(values.data() + i * bytes, line.element(found[i].index),
                static_cast<size_t>(bytes));
  }
  order_line({line.kind, values.data(), bytes, kept}, k, out, scratch);
  for (int64_t i = 0; i < k; ++i) {
    int64_t& index = out.indices[i * out.index_stride];
    index = found[index].index;
  }
  return true;
}

}  // namespace

void order_line(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch) {
  visit_key(line, [&](auto tag) {
    using K = decltype(tag);
    if (are_few(k, line.n)) return order_few<K>(line, k, out, scratch);
    if (are_part(k, line.n) && order_part<K>(line, k, out, scratch)) return;
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
