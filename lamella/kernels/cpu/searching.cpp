// Searching and counting: searchsorted, bucketize, isin, histc, bincount.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/ordering.h"
#include "lamella/kernels/selecting.h"
#include "lamella/kernels/type_promotion.h"

namespace lamella::native {

// ---- searchsorted and bucketize ----

namespace {

bool from_right(const char* op, bool right, std::optional<std::string_view> side) {
  if (!side) return right;
  LAMELLA_CHECK(*side == "left" || *side == "right", op,
                ": expected 'side' to be left or right, got '", *side, "'");
  LAMELLA_CHECK(*side == "right" || !right, op, ": expected 'side' and 'right' to agree, got '",
                *side, "' and True");
  return *side == "right";
}

// Binary search of one line, in which NaN comes after all numbers.
template <class T>
int64_t search_plainly(const T* sorted, const int64_t* order, int64_t n, T value, bool right) {
  auto y = static_cast<compute_type<T>>(value);
  auto is_before = [](auto a, auto b) { return a < b || (b != b && a == a); };
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    auto x = static_cast<compute_type<T>>(sorted[order != nullptr ? order[middle] : middle]);
    if (right ? !is_before(y, x) : is_before(x, y)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Searches for `each` values in each line of n elements by their keys. Calls found(i, position) for
// value i.
template <class K, class F>
void search_by_keys(ScalarType dtype, const Tensor& lines, int64_t n, const Tensor& values,
                    int64_t each, bool right, F&& found) {
  const KeyLoops<K>& loops = key_loops<K>();
  KeyKind kind = key_kind(dtype, false);
  Tensor kept =
      new_tensor({lines.numel() * static_cast<int64_t>(sizeof(K))}, kByte, lines.device());
  auto* keys = static_cast<K*>(kept.data_ptr());
  auto element = [&](const Tensor& t, int64_t i) {
    return static_cast<const char*>(t.const_data_ptr()) + i * kind.bytes;
  };
  loops.read(kind, element(lines, 0), kind.bytes, lines.numel(), keys);
  auto last = static_cast<K>(kind.bytes == sizeof(K) ? ~K(0) : (K(1) << 8 * kind.bytes) - 1);
  parallel_for(0, values.numel(), 2048, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 512;
    K wanted[kBlock];
    int64_t where[kBlock];
    while (begin < end) {
      int64_t line = begin / each;
      int64_t count = std::min({end - begin, (line + 1) * each - begin, kBlock});
      loops.read(kind, element(values, begin), kind.bytes, count, wanted);
      bool is_last[kBlock];
      // From the right the first greater key is wanted: all come before one above the last.
      for (int64_t i = 0; i < count; ++i) {
        is_last[i] = right && wanted[i] == last;
        wanted[i] += right ? 1 : 0;
      }
      loops.search(keys + line * n, n, wanted, count, where);
      for (int64_t i = 0; i < count; ++i) found(begin + i, is_last[i] ? n : where[i]);
      begin += count;
    }
  });
}

Tensor search(const char* op, const Tensor& sequence, const Tensor& values, bool out_int32,
              bool right, const std::optional<Tensor>& sorter) {
  LAMELLA_CHECK(sequence.dim() > 0, op,
                ": expected the sorted numbers to have at least 1 dimension, got a tensor with 0");
  bool one_line = sequence.dim() == 1;
  if (!one_line) {
    bool fits = sequence.dim() == values.dim();
    for (int64_t d = 0; fits && d + 1 < sequence.dim(); ++d) {
      fits = sequence.size(d) == values.size(d);
    }
    LAMELLA_CHECK(fits, op, ": expected 'self' to have the leading sizes of ", sequence.sizes(),
                  ", got ", values.sizes());
  }
  bool has_sorter = sorter.has_value() && sorter->defined();
  if (has_sorter) {
    LAMELLA_CHECK(sorter->sizes().equals(sequence.sizes()), op,
                  ": expected 'sorter' to be of shape ", sequence.sizes(), ", got ",
                  sorter->sizes());
    LAMELLA_CHECK(sorter->scalar_type() == kLong, op, ": expected 'sorter' to be int64, got ",
                  sorter->scalar_type());
  }
  LAMELLA_CHECK(!out_int32 || sequence.size(-1) <= INT32_MAX, op,
                ": expected the sorted numbers to be at most ", INT32_MAX,
                " in a line where 'out_int32' is True, got ", sequence.sizes());
  Tensor result = new_tensor(values.sizes(), out_int32 ? kInt : kLong, values.device());
  if (result.is_meta() || result.numel() == 0) return result;
  ScalarType dtype = lamella::result_type(sequence, values);
  Tensor lines = sequence.to(dtype).contiguous(), given = values.to(dtype).contiguous();
  Tensor order = has_sorter ? sorter->contiguous() : Tensor();
  const int64_t* at = has_sorter ? order.const_data_ptr<int64_t>() : nullptr;
  int64_t n = sequence.size(-1);
  for (int64_t i = 0; has_sorter && i < order.numel(); ++i) {
    LAMELLA_CHECK(at[i] >= 0 && at[i] < n, op, ": expected the elements of 'sorter' to be in [0, ",
                  n, "), got ", at[i]);
  }
  int64_t each = one_line ? given.numel() : given.size(-1);
  auto put = [&](int64_t i, int64_t found) {
    if (out_int32) {
      result.mutable_data_ptr<int32_t>()[i] = static_cast<int32_t>(found);
    } else {
      result.mutable_data_ptr<int64_t>()[i] = found;
    }
  };
  // Computing keys pays for many values.
  bool by_keys = given.numel() >= lines.numel() / 8 && n > 0 && n < INT32_MAX;
  if (by_keys) {
    if (has_sorter) lines = lines.gather(-1, order);
    if (lines.element_size() == 8) {
      search_by_keys<uint64_t>(dtype, lines, n, given, each, right, put);
    } else {
      search_by_keys<uint32_t>(dtype, lines, n, given, each, right, put);
    }
    return result;
  }
  visit_real(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    const T* sorted = lines.const_data_ptr<T>();
    const T* value = given.const_data_ptr<T>();
    parallel_for(0, given.numel(), 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t start = i / each * n;
        put(i, search_plainly(sorted + start, at == nullptr ? nullptr : at + start, n, value[i],
                              right));
      }
    });
  });
  return result;
}
// The number as a tensor of the dtype that it has beside `like`, in which it may wrap or overflow.
Tensor number_like(const Scalar& number, const Tensor& like) {
  return lamella::full({}, number, TensorOptions(number.type()).device(like.device()))
      .to(lamella::result_type(like, number));
}
}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  return search("searchsorted", sorted_sequence, self, out_int32,
                from_right("searchsorted", right, side), sorter);
}
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  return searchsorted(sorted_sequence, number_like(self, sorted_sequence), out_int32, right, side,
                      sorter);
}
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  LAMELLA_CHECK(boundaries.dim() == 1, "bucketize: expected 'boundaries' to have 1 dimension, got ",
                boundaries.sizes());
  return search("bucketize", boundaries, self, out_int32, right, std::nullopt);
}
Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return bucketize(number_like(self, boundaries), boundaries, out_int32, right);
}

// ---- isin ----

namespace {

template <class K>
void find_members(const Tensor& values, const Tensor& tests, bool* found) {
  const KeyLoops<K>& loops = key_loops<K>();
  KeyKind kind = key_kind(values.scalar_type(), false);
  int64_t n = tests.numel();
  Tensor kept = new_tensor({n * static_cast<int64_t>(sizeof(K))}, kByte, values.device());
  auto* keys = static_cast<K*>(kept.data_ptr());
  loops.read(kind, static_cast<const char*>(tests.const_data_ptr()), kind.bytes, n, keys);
  KeyBounds<K> bounds = loops.bounds(keys, n);
  K least = bounds.least, range = bounds.most - bounds.least;
  // A table of all keys between the least and the greatest, or else a search among sorted keys.
  std::vector<uint8_t> table;
  if (range <= static_cast<K>(std::clamp<int64_t>(values.numel(), 1 << 12, 1 << 22))) {
    table.resize(static_cast<size_t>(range) + 1);
    for (int64_t i = 0; i < n; ++i) table[static_cast<size_t>(keys[i] - least)] = 1;
  } else if (!bounds.ascending) {
    std::sort(keys, keys + n);
  }
  auto* from = static_cast<const char*>(values.const_data_ptr());
  auto nan = static_cast<K>(nan_key(kind));
  parallel_for(0, values.numel(), 2048, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 512;
    K wanted[kBlock];
    int64_t where[kBlock];
    for (; begin < end; begin += kBlock) {
      int64_t count = std::min(end - begin, kBlock);
      loops.read(kind, from + begin * kind.bytes, kind.bytes, count, wanted);
      if (table.empty()) loops.search(keys, n, wanted, count, where);
      for (int64_t i = 0; i < count; ++i) {
        auto place = static_cast<K>(wanted[i] - least);
        bool is_in = table.empty() ? where[i] < n && keys[where[i]] == wanted[i]
                                   : place <= range && table[static_cast<size_t>(place)] != 0;
        found[begin + i] = is_in && !(kind.is_float && wanted[i] == nan);
      }
    }
  });
}
void isin_kernel(const Tensor& values, const Tensor& tests, const Tensor& found) {
  auto* out = found.mutable_data_ptr<bool>();
  if (values.element_size() == 8) {
    find_members<uint64_t>(values, tests, out);
  } else {
    find_members<uint32_t>(values, tests, out);
  }
}

}  // namespace
LAMELLA_REGISTER_KERNEL(isin_on, &isin_kernel);

// ---- histc and bincount ----

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  LAMELLA_CHECK(bins > 0, "histc: expected 'bins' of at least 1, got ", bins);
  LAMELLA_CHECK(self.is_floating_point() || is_integral(self.scalar_type(), false),
                "histc: expected 'self' to be floating point or integers, got ",
                self.scalar_type());
  Tensor counts = lamella::zeros({bins}, self.options());
  if (self.is_meta() || self.numel() == 0) return counts;
  Tensor values = self.to(kDouble).contiguous();
  const auto* p = values.const_data_ptr<double>();
  double low = min.toDouble(), high = max.toDouble();
  if (low == high) {
    auto [least, most] = std::minmax_element(p, p + values.numel());
    low = *least;
    high = *most;
    if (low == high) {
      low -= 1;
      high += 1;
    }
  }
  LAMELLA_CHECK(std::isfinite(low) && std::isfinite(high) && low < high,
                "histc: expected a finite range with 'min' below 'max', got ", low, " to ", high);
  double scale = std::isfinite(high - low) ? 1 : 0.5;  // the difference may overflow
  double width = high * scale - low * scale;
  Tensor whole = lamella::zeros({bins}, kLong);
  auto* found = whole.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (!(p[i] >= low && p[i] <= high)) continue;
    auto bin =
        static_cast<int64_t>((p[i] * scale - low * scale) / width * static_cast<double>(bins));
    ++found[bin < bins ? bin : bins - 1];
  }
  counts.copy_(whole);
  return counts;
}

namespace {

// The greatest element by its unsigned value, in which negative numbers exceed all others.
int64_t greatest_without_sign(const int64_t* p, int64_t n) {
  return static_cast<int64_t>(
      key_loops<uint64_t>().bounds(reinterpret_cast<const uint64_t*>(p), n).most);
}

// Counts small numbers in one pass over memory. It alternates between several tables, because equal
// neighbours would wait for each other's increment.
class SmallCounts {
 public:
  static constexpr int64_t kLeast = 1 << 14;  // fewest numbers for which this is faster

  // Returns false if a number is negative or too large; the counts are then invalid.
  bool add(const int64_t* p, int64_t n) {
    tables_.resize(kTables * kLength);
    int64_t *first = tables_.data(), *second = first + kLength, *third = second + kLength;
    int64_t* fourth = third + kLength;
    for (int64_t at = 0; at < n;) {
      int64_t end = std::min(n, at + kBlock), most = greatest_without_sign(p + at, end - at);
      if (most < 0 || most >= kLength) return false;
      most_ = std::max(most_, most);
      for (; at + kTables <= end; at += kTables) {
        ++first[p[at]];
        ++second[p[at + 1]];
        ++third[p[at + 2]];
        ++fourth[p[at + 3]];
      }
      for (; at < end; ++at) ++first[p[at]];
    }
    return true;
  }
  int64_t most() const { return most_; }
  int64_t count(int64_t number) const {
    int64_t sum = 0;
    for (int64_t t = 0; t < kTables; ++t) sum += tables_[static_cast<size_t>(t * kLength + number)];
    return sum;
  }

 private:
  static constexpr int64_t kTables = 4, kLength = 4096, kBlock = 4096;
  std::vector<int64_t> tables_;
  int64_t most_ = -1;
};

}  // namespace

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  LAMELLA_CHECK(self.dim() == 1 && is_integral(self.scalar_type(), false),
                "bincount: expected 'self' to be integers in 1 dimension, got ", self.scalar_type(),
                " ", self.sizes());
  LAMELLA_CHECK(minlength >= 0, "bincount: expected 'minlength' of at least 0, got ", minlength);
  bool weighted = weights.has_value() && weights->defined();
  LAMELLA_CHECK(!weighted || weights->sizes().equals(self.sizes()),
                "bincount: expected 'weights' to be of shape ", self.sizes(), ", got ",
                weighted ? weights->sizes() : IntArrayRef());
  Tensor numbers = self.to(kLong).contiguous();
  const auto* p = numbers.const_data_ptr<int64_t>();
  int64_t n = numbers.numel(), most = -1;
  SmallCounts small;
  bool is_counted = !weighted && n >= SmallCounts::kLeast && small.add(p, n);
  if (is_counted) {
    most = small.most();
  } else if (n > 0) {
    most = greatest_without_sign(p, n);
    if (most < 0) most = *std::find_if(p, p + n, [](int64_t number) { return number < 0; });
    LAMELLA_CHECK(most >= 0, "bincount: expected 'self' of at least 0, got ", most);
  }
  LAMELLA_CHECK(most < INT64_MAX, "bincount: expected 'self' below ", INT64_MAX, ", got ", most);
  int64_t length = std::max(minlength, most + 1);
  ScalarType dtype = !weighted ? kLong : weights->scalar_type() == kFloat ? kFloat : kDouble;
  Tensor counts = lamella::zeros({length}, dtype);
  if (weighted) {
    Tensor weight = weights->to(dtype).contiguous();
    visit_floating(dtype, "bincount", [&](auto tag) {
      using T = type_of<decltype(tag)>;
      auto* sum = counts.mutable_data_ptr<T>();
      auto* w = weight.const_data_ptr<T>();
      for (int64_t i = 0; i < n; ++i) sum[p[i]] += w[i];
    });
    return counts;
  }
  auto* count = counts.mutable_data_ptr<int64_t>();
  if (is_counted) {
    for (int64_t i = 0; i <= most; ++i) count[i] = small.count(i);
  } else {
    for (int64_t i = 0; i < n; ++i) ++count[p[i]];
  }
  return counts;
}

}  // namespace lamella::native
