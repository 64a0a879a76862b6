// Which of equal elements are chosen, and in which order.
//
// Note [Equals among the first few]
//   topk() and kthvalue() may choose any of several equal elements. Programs that route by the
//   indices (experts, beams) repeat PyTorch's results only with the same choice, which follows from
//   its algorithms: the standard library's partial_sort if 64 k <= n, else nth_element and a sort
//   of the first k - 1; and quickselect with the median of three for kthvalue(). The first keeps a
//   heap of k elements; only the few elements less than its greatest enter it, and these are found
//   with vectors. The others run only if ties matter, after ordering.cpp has found the elements.
#include <algorithm>
#include <cstring>

#include "lamella/kernels/cpu/line_keys.h"

namespace lamella::native {
namespace {

struct IsLess {
  template <class K>
  bool operator()(const KeyAndIndex<K>& a, const KeyAndIndex<K>& b) const {
    return a.key < b.key;
  }
};
constexpr IsLess is_less;

// The line's keys, followed by room for as many pairs.
template <class K>
const K* read_keys(const Line& line, OrderScratch& scratch) {
  constexpr int64_t kPairWords = sizeof(KeyAndIndex<K>) / sizeof(uint64_t);
  auto* keys = reinterpret_cast<K*>(scratch.third(line.n * (1 + kPairWords) + kKeyLanes));
  key_loops<K>().read(line.kind, line.from, line.stride, line.n, keys);
  return keys;
}
template <class K>
KeyAndIndex<K>* make_pairs(const K* keys, int64_t n) {
  auto* words = reinterpret_cast<uint64_t*>(const_cast<K*>(keys)) + n + kKeyLanes;
  auto* pairs = reinterpret_cast<KeyAndIndex<K>*>(words);
  for (int64_t i = 0; i < n; ++i) pairs[i] = {keys[i], i};
  return pairs;
}

// Reorders the pairs so that position k holds the element of rank k, after no greater and before no
// lesser elements (Hoare's quickselect).
template <class K>
void quickselect(KeyAndIndex<K>* a, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  while (low + 1 < high) {
    std::swap(a[low + (high - low) / 2], a[low + 1]);
    if (is_less(a[high], a[low + 1])) std::swap(a[low + 1], a[high]);
    if (is_less(a[high], a[low])) std::swap(a[low], a[high]);
    if (is_less(a[low], a[low + 1])) std::swap(a[low + 1], a[low]);
    const KeyAndIndex<K> pivot = a[low];
    int64_t i = low + 1, j = high;
    while (true) {
      do ++i;
      while (is_less(a[i], pivot));
      do --j;
      while (is_less(pivot, a[j]));
      if (j < i) break;
      std::swap(a[i], a[j]);
    }
    std::swap(a[low], a[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (low + 1 == high && is_less(a[high], a[low])) std::swap(a[low], a[high]);
}

// Replaces the greatest element of a heap by `value` like the standard library's partial_sort: the
// hole is moved down to a leaf, and the value up from there.
template <class K>
void replace_top(KeyAndIndex<K>* heap, int64_t n, const KeyAndIndex<K>& value) {
  int64_t hole = 0, child = 0;
  while (child < (n - 1) / 2) {
    child = 2 * child + 2;
    if (is_less(heap[child], heap[child - 1])) --child;
    heap[hole] = heap[child];
    hole = child;
  }
  if (n % 2 == 0 && child == (n - 2) / 2) {
    child = 2 * child + 1;
    heap[hole] = heap[child];
    hole = child;
  }
  while (hole > 0 && is_less(heap[(hole - 1) / 2], value)) {
    heap[hole] = heap[(hole - 1) / 2];
    hole = (hole - 1) / 2;
  }
  heap[hole] = value;
}

template <class K>
void store_pairs(const Line& line, const KeyAndIndex<K>* pairs, int64_t k, const OrderedLine& out) {
  const auto bytes = static_cast<size_t>(line.kind.bytes);
  for (int64_t i = 0; i < k; ++i) {
    out.indices[i * out.index_stride] = pairs[i].index;
    std::memcpy(out.values + i * out.value_stride, line.element(pairs[i].index), bytes);
  }
}

void order_by_heap(const Line& line, int64_t k, const OrderedLine& out, OrderScratch& scratch) {
  visit_key(line, [&](auto tag) {
    using K = decltype(tag);
    constexpr int64_t kPairWords = sizeof(KeyAndIndex<K>) / sizeof(uint64_t);
    auto* heap = reinterpret_cast<KeyAndIndex<K>*>(scratch.third((k + kBlock + 1) * kPairWords));
    KeyAndIndex<K>* found = heap + k;
    const KeyLoops<K>& loops = key_loops<K>();
    int64_t filled = 0;
    for_each_block<K>(line, 0, line.n, [&](const K* keys, int64_t count, int64_t at) {
      int64_t i = 0;
      if (filled < k) {
        for (; i < count && filled < k; ++i, ++filled) heap[filled] = {keys[i], at + i};
        if (filled < k) return true;
        std::make_heap(heap, heap + k, is_less);
      }
      if (heap[0].key == 0) return false;  // no key is less
      const auto limit = static_cast<K>(heap[0].key - 1);
      const int64_t less = loops.append(keys + i, count - i, limit, at + i, found);
      for (int64_t c = 0; c < less; ++c) {
        if (is_less(found[c], heap[0])) replace_top(heap, k, KeyAndIndex<K>(found[c]));
      }
      return true;
    });
    std::sort_heap(heap, heap + k, is_less);
    store_pairs(line, heap, k, out);
  });
}

}  // namespace

void order_first(const Line& line, int64_t k, bool sorted, const OrderedLine& out,
                 OrderScratch& scratch) {
  if (k <= line.n / 64) return order_by_heap(line, k, out, scratch);
  if (sorted) order_line(line, k, out, scratch);
  visit_key(line, [&](auto tag) {
    using K = decltype(tag);
    const K* keys = read_keys<K>(line, scratch);
    if (sorted) {
      auto key_at = [&](int64_t i) { return keys[out.indices[i * out.index_stride]]; };
      bool has_equals = key_loops<K>().count(keys, line.n, key_at(k - 1)) > 1;
      for (int64_t i = 1; i < k && !has_equals; ++i) has_equals = key_at(i) == key_at(i - 1);
      if (!has_equals) return;
    }
    KeyAndIndex<K>* pairs = make_pairs(keys, line.n);
    std::nth_element(pairs, pairs + k - 1, pairs + line.n, is_less);
    if (sorted) std::sort(pairs, pairs + k - 1, is_less);
    store_pairs(line, pairs, k, out);
  });
}

int64_t settle_kth(const Line& line, int64_t k, int64_t found, OrderScratch& scratch) {
  return visit_key(line, [&](auto tag) {
    using K = decltype(tag);
    const K* keys = read_keys<K>(line, scratch);
    if (key_loops<K>().count(keys, line.n, keys[found]) == 1) return found;
    KeyAndIndex<K>* pairs = make_pairs(keys, line.n);
    quickselect(pairs, line.n, k);
    return pairs[k].index;
  });
}

}  // namespace lamella::native
