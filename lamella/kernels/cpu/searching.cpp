// Searching and counting: searchsorted, bucketize, histc, bincount.
#include <algorithm>
#include <cmath>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"
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

Tensor search(const char* op, const Tensor& sequence, const Tensor& values, bool out_int32,
              bool right, const std::optional<Tensor>& sorter) {
  LAMELLA_CHECK(sequence.dim() > 0, op, ": expected the sorted numbers to have dimensions, got ",
                sequence.sizes());
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
  visit_real(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    const T* sorted = lines.const_data_ptr<T>();
    const T* value = given.const_data_ptr<T>();
    parallel_for(0, given.numel(), 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t start = one_line ? 0 : i / each * n;
        int64_t low = 0, high = n;
        while (low < high) {
          int64_t middle = low + (high - low) / 2;
          T here = sorted[start + (at != nullptr ? at[start + middle] : middle)];
          // NaN, which compares with nothing, comes behind everything.
          auto x = static_cast<compute_type<T>>(here), y = static_cast<compute_type<T>>(value[i]);
          bool before = right ? !(x > y) : !(x >= y);
          if (before) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        if (out_int32) {
          result.mutable_data_ptr<int32_t>()[i] = static_cast<int32_t>(low);
        } else {
          result.mutable_data_ptr<int64_t>()[i] = low;
        }
      }
    });
  });
  return result;
}
// A number beside a tensor takes part in its dtype, in which it wraps or becomes infinite.
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

// ---- histc and bincount ----

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  LAMELLA_CHECK(bins > 0, "histc: expected 'bins' of at least 1, got ", bins);
  LAMELLA_CHECK(self.is_floating_point() || is_integral(self.scalar_type(), false),
                "histc: expected 'self' to be floating point or whole numbers, got ",
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

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  LAMELLA_CHECK(self.dim() == 1 && is_integral(self.scalar_type(), false),
                "bincount: expected 'self' to be whole numbers in 1 dimension, got ",
                self.scalar_type(), " ", self.sizes());
  LAMELLA_CHECK(minlength >= 0, "bincount: expected 'minlength' of at least 0, got ", minlength);
  bool weighted = weights.has_value() && weights->defined();
  LAMELLA_CHECK(!weighted || weights->sizes().equals(self.sizes()),
                "bincount: expected 'weights' to be of shape ", self.sizes(), ", got ",
                weighted ? weights->sizes() : IntArrayRef());
  Tensor numbers = self.to(kLong).contiguous();
  const auto* p = numbers.const_data_ptr<int64_t>();
  int64_t n = numbers.numel(), length = minlength;
  for (int64_t i = 0; i < n; ++i) {
    LAMELLA_CHECK(p[i] >= 0, "bincount: expected 'self' of at least 0, got ", p[i]);
    LAMELLA_CHECK(p[i] < INT64_MAX, "bincount: expected 'self' below ", INT64_MAX, ", got ", p[i]);
    if (p[i] >= length) length = p[i] + 1;
  }
  ScalarType dtype = !weighted ? kLong : weights->scalar_type() == kFloat ? kFloat : kDouble;
  Tensor counts = lamella::zeros({length}, dtype);
  Tensor values = weighted ? weights->to(dtype) : lamella::ones({1}, dtype).expand({n});
  return counts.index_add_(0, numbers, values);
}

}  // namespace lamella::native
