// Reductions over segments of a dimension, and hashes of elements.
#include <algorithm>
#include <limits>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/families/families.h"

namespace aten::native {

namespace {
// Calls f(line, segment, begin, end) for the segments of the lines of `size` elements. The last
// dimension of `bounds`, int64 and contiguous, has the lengths of the segments of a line, or, if
// `are_offsets`, their beginnings and the end of the last one.
template <class F>
void each_segment(const Tensor& bounds, int64_t size, bool are_offsets, bool unsafe, const F& f) {
  const char* op = "segment_reduce";
  const char* name = are_offsets ? "offsets" : "lengths";
  const auto* numbers = bounds.const_data_ptr<int64_t>();
  const int64_t width = bounds.size(-1), count = width - (are_offsets ? 1 : 0);
  int64_t lines = 1;
  for (int64_t d = 0; d + 1 < bounds.dim(); ++d) lines *= bounds.size(d);
  for (int64_t line = 0; line < lines; ++line, numbers += width) {
    int64_t at = are_offsets ? numbers[0] : 0;
    LAMELLA_CHECK(at >= 0, op, ": expected '", name, "' not to be negative, got ", at);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t length = are_offsets ? numbers[k + 1] - at : numbers[k];
      LAMELLA_CHECK(length >= 0, op, ": expected '", name,
                    are_offsets ? "' to grow, got " : "' not to be negative, got ",
                    are_offsets ? numbers[k + 1] : length);
      LAMELLA_CHECK(at <= size && length <= size - at, op, ": expected segments of at most ", size,
                    " elements together, got more");
      f(line, k, at, at + length);
      at += length;
    }
    LAMELLA_CHECK(unsafe || are_offsets || at == size, op,
                  ": expected the rows of 'lengths' to sum to ", size, ", got ", at);
  }
}

// The segments of the last dimension of `data`, reduced one element after the other as the
// operators below do.
template <class T>
Tensor reduced(const Tensor& data, const Tensor& bounds, bool are_offsets, bool unsafe,
               const std::string_view how, T neutral) {
  const int64_t size = data.size(-1), count = bounds.size(-1) - (are_offsets ? 1 : 0);
  Dims shape = sizes_of(data);
  shape.back() = count;
  const Tensor result = lamella::empty(shape, data.options());
  const T* from = data.const_data_ptr<T>();
  T* to = result.mutable_data_ptr<T>();
  const auto run = [&](const auto& combine) {
    each_segment(bounds, size, are_offsets, unsafe,
                 [&](int64_t line, int64_t k, int64_t begin, int64_t end) {
                   T all = neutral;
                   T nan = 0;  // or the first one; kept apart, as a choice by it would be a jump
                   for (int64_t i = begin; i < end; ++i) {
                     const T x = from[line * size + i];
                     all = combine(all, x);
                     if (LAMELLA_UNLIKELY(x != x) && nan == nan) nan = x;
                   }
                   to[line * count + k] = nan == nan ? all : nan;
                 });
  };
  if (how == "max") {
    run([](T a, T b) { return a > b ? a : b; });
  } else if (how == "min") {
    run([](T a, T b) { return a < b ? a : b; });
  } else if (how == "prod") {
    run([](T a, T b) { return a * b; });
  } else {
    run([](T a, T b) { return a + b; });
  }
  return result;
}
}  // namespace

// The index of the segment of each of `size` elements; elements in no segment get the number of
// segments.
Tensor segment_places(const Tensor& bounds, int64_t size, bool are_offsets, bool unsafe) {
  const char* op = "segment_reduce";
  const char* name = are_offsets ? "offsets" : "lengths";
  LAMELLA_CHECK_TYPE(bounds.scalar_type() == kLong || bounds.scalar_type() == kInt, op,
                     ": expected '", name, "' to be int32 or int64, got ", bounds.scalar_type());
  LAMELLA_CHECK(bounds.dim() >= 1 && (!are_offsets || bounds.size(-1) >= 1), op, ": expected '",
                name, "' to have a dimension for the segments, got ", bounds.sizes());
  Dims shape(bounds.sizes().begin(), bounds.sizes().end());
  const int64_t count = shape.back() - (are_offsets ? 1 : 0);
  shape.back() = size;
  if (bounds.is_meta()) return lamella::empty(shape, bounds.options().dtype(kLong));
  const Tensor result = lamella::full(shape, count, bounds.options().dtype(kLong));
  auto* place = result.mutable_data_ptr<int64_t>();
  each_segment(bounds.to(kLong).contiguous(), size, are_offsets, unsafe,
               [&](int64_t line, int64_t k, int64_t begin, int64_t end) {
                 std::fill(place + line * size + begin, place + line * size + end, k);
               });
  return result;
}

Tensor segment_reduce(const Tensor& data, std::string_view reduce,
                      const std::optional<Tensor>& lengths, const std::optional<Tensor>& indices,
                      const std::optional<Tensor>& offsets, int64_t axis, bool unsafe,
                      const std::optional<Scalar>& initial) {
  const char* op = "segment_reduce";
  const bool by_length = lengths.has_value() && lengths->defined();
  const bool by_offset = !by_length && offsets.has_value() && offsets->defined();
  LAMELLA_CHECK_NOT_IMPLEMENTED(!(indices.has_value() && indices->defined()), op,
                                ": expected 'lengths' or 'offsets', got 'indices'");
  LAMELLA_CHECK(by_length || by_offset, op, ": expected 'lengths' or 'offsets', got neither");
  LAMELLA_CHECK_TYPE(data.is_floating_point(), op, ": expected 'data' to be floating point, got ",
                     data.scalar_type());
  LAMELLA_CHECK(data.dim() >= 1, op,
                ": expected 'data' to have at least 1 dimension, got a tensor with 0");
  const int64_t dim = wrapped(op, axis, data.dim());
  const bool largest = reduce == "max" || reduce == "amax",
             smallest = reduce == "min" || reduce == "amin";
  const bool mean = reduce == "mean", product = reduce == "prod";
  LAMELLA_CHECK(largest || smallest || mean || product || reduce == "sum", op,
                ": expected 'reduce' to be sum, mean, max, min or prod, got ", reduce);
  const Tensor& bounds = by_length ? *lengths : *offsets;
  LAMELLA_CHECK(bounds.dim() == dim + 1 && bounds.sizes().slice(0, static_cast<size_t>(dim)) ==
                                               data.sizes().slice(0, static_cast<size_t>(dim)),
                op, ": expected '", by_length ? "lengths" : "offsets",
                "' to have the dimensions of 'data' before 'axis' and one for the segments, got ",
                bounds.sizes(), " for ", data.sizes(), " and axis ", dim);
  const int64_t segments = bounds.size(-1) - (by_offset ? 1 : 0);
  const double infinity = std::numeric_limits<double>::infinity();
  const double neutral = largest ? -infinity : smallest ? infinity : product ? 1 : 0;
  const ScalarType type = data.scalar_type(), counted = bounds.scalar_type();
  Tensor result;
  if (dim == data.dim() - 1 && segments >= 0 && (type == kFloat || type == kDouble) &&
      (counted == kLong || counted == kInt) && is_plain(data) && is_plain(bounds)) {
    const std::string_view how = largest ? "max" : smallest ? "min" : product ? "prod" : "sum";
    const Tensor numbers = bounds.to(kLong).contiguous();
    result = type == kFloat
                 ? reduced<float>(data.contiguous(), numbers, by_offset, unsafe, how,
                                  static_cast<float>(neutral))
                 : reduced<double>(data.contiguous(), numbers, by_offset, unsafe, how, neutral);
  } else {
    Tensor place = aten::_segment_places(bounds, data.size(dim), by_offset, unsafe);
    Dims line = sizes_of(place), shape = sizes_of(data);
    line.resize(shape.size(), 1);
    place = place.reshape(line).expand(shape);
    shape[static_cast<size_t>(dim)] = segments + 1;  // the last is for elements in no segment
    const Tensor empty = lamella::full(shape, neutral, data.options());
    const Tensor all = largest || smallest ? empty.scatter_reduce(dim, place, data,
                                                                  largest ? "amax" : "amin", false)
                       : product           ? empty.scatter_reduce(dim, place, data, "prod", true)
                                           : empty.scatter_add(dim, place, data);
    result = all.narrow(dim, 0, segments).contiguous();
  }
  if (initial && (largest || smallest)) {
    result = result.masked_fill(largest ? result.lt(*initial) : result.gt(*initial), *initial);
  } else if (initial) {
    result = product ? result.mul(*initial) : result.add(*initial);
  }
  if (!mean) return result;
  const Tensor sizes =
      by_length ? bounds : bounds.narrow(dim, 1, segments).sub(bounds.narrow(dim, 0, segments));
  Dims line = sizes_of(sizes);
  line.resize(static_cast<size_t>(data.dim()), 1);
  const Tensor counts = sizes.to(type).reshape(line);
  // The mean of an empty segment is NaN, or `initial` if given.
  return result.div(initial ? counts.clamp_min(1) : counts);
}

// The exclusive or of the bits of the elements, converted to float64 or int64.
Tensor hash_tensor(const Tensor& self, IntArrayRef dim, bool keepdim, int64_t mode) {
  const char* op = "hash_tensor";
  LAMELLA_CHECK(mode == 0, op, ": expected 'mode' to be 0, got ", mode);
  LAMELLA_CHECK_TYPE(!self.is_complex() && self.scalar_type() != kUInt16 &&
                         self.scalar_type() != kUInt32 && self.scalar_type() != kUInt64,
                     op, ": expected 'self' to be real and not of wide unsigned integers, got ",
                     self.scalar_type());
  const auto rank = static_cast<size_t>(self.dim());
  std::vector<bool> reduced(rank, dim.empty());
  for (int64_t d : dim) {
    const int64_t at = wrapped(op, d, self.dim());
    if (rank == 0) continue;
    LAMELLA_CHECK(!reduced[static_cast<size_t>(at)], op,
                  ": expected each dimension once in 'dim', got ", dim);
    reduced[static_cast<size_t>(at)] = true;
  }
  Dims order, last, shape;
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t n = self.size(static_cast<int64_t>(d));
    if (reduced[d]) {
      last.push_back(static_cast<int64_t>(d));
      inner *= n;
      if (keepdim) shape.push_back(1);
    } else {
      order.push_back(static_cast<int64_t>(d));
      outer *= n;
      shape.push_back(n);
    }
  }
  LAMELLA_CHECK_INDEX(inner > 0, op, ": expected 'self' to have elements to reduce, got ",
                      self.sizes(), " with 'dim' ", dim);
  const Tensor result = lamella::empty(shape, self.options().dtype(kUInt64));
  if (self.is_meta() || outer == 0) return result;
  order.insert(order.end(), last.begin(), last.end());
  const Tensor given =
      self.permute(order).to(self.is_floating_point() ? kDouble : kLong).contiguous();
  const auto* words = static_cast<const uint64_t*>(given.const_data_ptr());
  auto* out = static_cast<uint64_t*>(result.mutable_data_ptr());
  in_parallel(outer, 1 + 65536 / inner, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint64_t hash = 0;
      for (int64_t j = i * inner; j < (i + 1) * inner; ++j) hash ^= words[j];
      out[i] = hash;
    }
  });
  return result;
}

}  // namespace aten::native
