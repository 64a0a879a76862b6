// sort and topk.
//
// Note [Sorting by keys]
//   Each element becomes an unsigned key whose order is the wanted one: integers with the sign bit
//   turned over, floating point as its bits (all turned over where negative, NaN above everything,
//   both zeros alike), all of it inverted for a descending order. The position makes keys distinct,
//   so any sort is stable, and one instantiation serves all dtypes. Elements of up to 4 bytes are
//   one word together with their position.
#include <algorithm>
#include <cstring>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella {
namespace native {
namespace {

struct KeyAndIndex {
  uint64_t key;
  int64_t index;
  bool operator<(const KeyAndIndex& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

template <class T>
uint64_t order_key(T value) {
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return static_cast<uint64_t>(value);
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<uint64_t>(static_cast<U>(value) ^
                                 static_cast<U>(U{1} << (sizeof(T) * 8 - 1)));
  } else if constexpr (std::is_same_v<T, double>) {
    if (value != value) return ~uint64_t{0};
    auto bits = __builtin_bit_cast(uint64_t, value + 0.0);
    return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
  } else {
    auto wide = static_cast<float>(value);
    if (wide != wide) return 0xffffffffu;
    auto bits = __builtin_bit_cast(uint32_t, wide + 0.0f);
    return bits >> 31 ? static_cast<uint32_t>(~bits) : bits | 0x80000000u;
  }
}
template <class T>
constexpr bool fits_one_word = sizeof(T) <= 4;

// One line of `n` elements; the first `k` in order go to values and indices. `all` sorts the line,
// otherwise just enough is done to know the first k, which are sorted if `sorted`.
struct Line {
  const char* from;
  int64_t from_stride;
  int64_t n, k;
  char* values;
  int64_t value_stride;
  int64_t* indices;
  int64_t index_stride;
  bool descending, sorted;
};

// Sorts long lists by parts, which are merged, so that threads share the work and interrupts are
// seen. No two items are equal.
template <class E>
void sort_items(std::vector<E>& items, int64_t n) {
  constexpr int64_t kRun = 1 << 20;
  auto at = [](std::vector<E>& list, int64_t i) { return list.begin() + i; };
  parallel_for(0, (n + kRun - 1) / kRun, 1, [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) {
      if (run != begin) check_interrupt();
      std::sort(at(items, run * kRun), at(items, std::min(n, (run + 1) * kRun)));
    }
  });
  if (n <= kRun) return;
  std::vector<E> merged(items.size());
  for (int64_t width = kRun; width < n; width *= 2) {
    for (int64_t start = 0; start < n; start += 2 * width) {
      int64_t middle = std::min(start + width, n), end = std::min(start + 2 * width, n);
      // A block of the first half at a time, with what of the second comes before its end.
      int64_t second = middle, out = start;
      for (int64_t first = start; first < middle; first += kRun) {
        check_interrupt();
        int64_t stop = std::min(first + kRun, middle);
        int64_t until = stop == middle ? end
                                       : std::lower_bound(at(items, second), at(items, end),
                                                          items[static_cast<size_t>(stop)]) -
                                             items.begin();
        std::merge(at(items, first), at(items, stop), at(items, second), at(items, until),
                   at(merged, out));
        out += stop - first + until - second;
        second = until;
      }
    }
    items.swap(merged);
  }
}

// Puts the k least items before the others, which may be lost. 0 < k.
template <class E>
void select_items(std::vector<E>& items, int64_t k) {
  constexpr int64_t kBlock = 1 << 18, kMostSelected = 1 << 22;
  auto n = static_cast<int64_t>(items.size());
  auto at = [&](int64_t i) { return items.begin() + i; };
  if (n <= kBlock || n <= 2 * k) {
    if (n > 2 * kMostSelected) return sort_items(items, n);  // selecting could not be interrupted
    std::nth_element(at(0), at(k - 1), at(n));
    return;
  }
  if (k > kMostSelected) return sort_items(items, n);
  // The least so far stand first, the greatest of them at k - 1. What is less comes behind them,
  // some of each block, and the least are selected anew.
  int64_t block = std::max(k, kBlock);
  std::nth_element(at(0), at(k - 1), at(block));
  for (int64_t begin = block; begin < n; begin += block) {
    check_interrupt();
    int64_t kept = k;
    for (auto from = at(begin), end = at(std::min(n, begin + block)); from != end; ++from) {
      *at(kept) = *from;
      kept += *from < *at(k - 1) ? 1 : 0;
    }
    if (kept > k) std::nth_element(at(0), at(k - 1), at(kept));
  }
}

template <class E>
void order_first(std::vector<E>& items, int64_t k, bool sorted) {
  if (k == 0) return;
  if (k < static_cast<int64_t>(items.size())) select_items(items, k);
  if (sorted) sort_items(items, k);
}

template <class T>
void put_result(const Line& line, int64_t at, int64_t index) {
  *reinterpret_cast<T*>(line.values + at * line.value_stride) =
      *reinterpret_cast<const T*>(line.from + index * line.from_stride);
  line.indices[at * line.index_stride] = index;
}

template <class T>
void order_line(const Line& line, std::vector<uint64_t>& words, std::vector<KeyAndIndex>& pairs) {
  auto n = static_cast<size_t>(line.n);
  auto element = [&](int64_t i) -> T {
    return *reinterpret_cast<const Stored<T>*>(line.from + i * line.from_stride);
  };
  if (fits_one_word<T> && line.n <= INT64_C(0xffffffff)) {
    words.resize(n);
    for (int64_t i = 0; i < line.n; ++i) {
      if ((i & 0xffff) == 0xffff) check_interrupt();
      uint64_t key = order_key<T>(element(i));
      if (line.descending) key = ~key & 0xffffffffu;
      words[static_cast<size_t>(i)] = key << 32 | static_cast<uint64_t>(i);
    }
    order_first(words, line.k, line.sorted);
    for (int64_t i = 0; i < line.k; ++i) {
      put_result<T>(line, i, static_cast<int64_t>(words[static_cast<size_t>(i)] & 0xffffffffu));
    }
    return;
  }
  pairs.resize(n);
  for (int64_t i = 0; i < line.n; ++i) {
    if ((i & 0xffff) == 0xffff) check_interrupt();
    uint64_t key = order_key<T>(element(i));
    pairs[static_cast<size_t>(i)] = {line.descending ? ~key : key, i};
  }
  order_first(pairs, line.k, line.sorted);
  for (int64_t i = 0; i < line.k; ++i) put_result<T>(line, i, pairs[static_cast<size_t>(i)].index);
}

// All lines of `self` along `dim`; outputs have size k there.
void order_lines(const char* op, const Tensor& self, int64_t dim, int64_t k, bool descending,
                 bool sorted, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  auto d = static_cast<size_t>(dim);
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[d];
  int64_t lines = values.numel() / k;
  int64_t bytes = self.element_size();
  // Where the i-th line starts in a tensor.
  auto start = [&](const Tensor& t, int64_t i) {
    int64_t offset = 0;
    for (size_t e = t.sizes().size(); e-- > 0;) {
      if (e == d) continue;
      offset += i % t.sizes()[e] * t.strides()[e];
      i /= t.sizes()[e];
    }
    return offset;
  };
  auto stride = [&](const Tensor& t) { return t.dim() == 0 ? 1 : t.strides()[d]; };
  visit_real(self.scalar_type(), op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    parallel_for(0, lines, 4096 / n + 1, [&](int64_t begin, int64_t end) {
      std::vector<uint64_t> words;
      std::vector<KeyAndIndex> pairs;
      for (int64_t i = begin; i < end; ++i) {
        Line line{static_cast<const char*>(self.const_data_ptr()) + start(self, i) * bytes,
                  stride(self) * bytes,
                  n,
                  k,
                  static_cast<char*>(values.data_ptr()) + start(values, i) * bytes,
                  stride(values) * bytes,
                  indices.mutable_data_ptr<int64_t>() + start(indices, i),
                  stride(indices),
                  descending,
                  sorted};
        order_line<T>(line, words, pairs);
      }
    });
  });
}

}  // namespace
}  // namespace native

namespace meta {
LAMELLA_META_FUNC2(sort, stable)
(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  maybe_wrap_dim(dim, self.dim(), "sort");
  native::Dims strides = self.is_non_overlapping_and_dense()
                             ? native::Dims(self.strides())
                             : native::infer_dense_strides(self.sizes(), self.strides());
  set_output_raw_strided(0, self.sizes(), strides, self.options());
  set_output_raw_strided(1, self.sizes(), strides, self.options().dtype(kLong));
}
LAMELLA_META_FUNC(topk)(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = maybe_wrap_dim(dim, self.dim(), "topk");
  int64_t size = self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(dim)];
  LAMELLA_CHECK(k >= 0 && k <= size, "topk: expected 'k' in [0, ", size, "], got ", k);
  native::Dims shape(self.sizes());
  if (self.dim() != 0) shape[static_cast<size_t>(dim)] = k;
  set_output_raw_strided(0, shape, {}, self.options());
  set_output_raw_strided(1, shape, {}, self.options().dtype(kLong));
}
}  // namespace meta

namespace native {

LAMELLA_IMPL_FUNC(sort_cpu)
(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending, const Tensor& values,
 const Tensor& indices) {
  dim = maybe_wrap_dim(dim, self.dim(), "sort");
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(dim)];
  order_lines("sort", self, dim, n, descending, true, values, indices);
}
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending) {
  return lamella::sort(self, false, dim, descending);
}
std::tuple<Tensor&, Tensor&> sort_out(const Tensor& self, int64_t dim, bool descending,
                                      Tensor& values, Tensor& indices) {
  return lamella::sort_out(values, indices, self, false, dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(lamella::sort(self, dim, descending));
}
Tensor argsort(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(lamella::sort(self, stable, dim, descending));
}

LAMELLA_IMPL_FUNC(topk_cpu)
(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, const Tensor& values,
 const Tensor& indices) {
  dim = maybe_wrap_dim(dim, self.dim(), "topk");
  order_lines("topk", self, dim, self.dim() == 0 ? 1 : k, largest, sorted, values, indices);
}

}  // namespace native
}  // namespace lamella
