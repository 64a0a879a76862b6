// fill_, zero_ and the values of ranges.
#include <cmath>
#include <complex>
#include <cstring>

#include "lamella/core/checked_size.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/core/warning_hook.h"
#include "lamella/kernels/cpu/fill.h"
#include "lamella/kernels/cpu/movement.h"
#include "lamella/kernels/cpu/range.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/selecting.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::native {

namespace {

// Copies a pattern of the size of an element into every element.
void fill_pattern(const Tensor& self, const char* pattern) {
  auto bytes = static_cast<int64_t>(self.itemsize());
  const Movement& move = movement_on(kCPU, bytes);
  if (self.is_non_overlapping_and_dense()) {
    auto* to = static_cast<char*>(self.data_ptr());
    parallel_for(0, self.numel(), 4 * kGrain, [&](int64_t begin, int64_t end) {
      move.fill(to + begin * bytes, pattern, end - begin);
    });
    return;
  }
  StridedLoop<1> loop(self.sizes());
  loop.operand(0, self.data_ptr(), self.strides(), self.itemsize());
  loop.plan();
  loop.parallel_planes([&](char* const* p, const int64_t* s, int64_t n0, int64_t n1) {
    move.plane({p[0], {s[0], s[1]}}, {const_cast<char*>(pattern), {0, 0}}, n0, n1, false);
  });
}

}  // namespace

Tensor& fill_(Tensor& self, const Scalar& value) {
  if (self.is_meta() || self.numel() == 0) return self;
  alignas(16) char pattern[16];
  visit_stored(self.scalar_type(), "fill_", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    T element = value.to<T>();
    std::memcpy(pattern, &element, sizeof(T));
  });
  fill_pattern(self, pattern);
  return self;
}
void warn_of_shared_elements(const char* op, const Tensor& self) {
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) > 1 && self.stride(d) == 0) {
      warn_user(str(op, ": 'self' is expanded to ", self.sizes(),
                    ", so elements that share memory are written together; clone it first"));
      return;
    }
  }
}

Scalar number_for(ScalarType dtype, const Tensor& value) {
  if (value.scalar_type() != kUInt64) return value.item();
  return (is_integral(dtype, true) ? value.view(kLong) : value.to(kDouble)).item();
}
Tensor& fill_(Tensor& self, const Tensor& value) {
  LAMELLA_CHECK(value.dim() == 0, "fill_: expected 'value' to have no dimensions, got ",
                value.sizes());
  if (self.is_meta() || value.is_meta()) return self;
  return native::fill_(self, number_for(self.scalar_type(), value));
}
Tensor fill(const Tensor& self, const Scalar& value) {
  Tensor result = lamella::empty_like(self);
  result.fill_(value);
  return result;
}
Tensor fill(const Tensor& self, const Tensor& value) {
  Tensor result = lamella::empty_like(self);
  result.fill_(value);
  return result;
}

Tensor& zero_(Tensor& self) {
  if (self.is_meta() || self.numel() == 0) return self;
  if (self.is_non_overlapping_and_dense()) {
    auto* to = static_cast<char*>(self.data_ptr());
    parallel_for(0, static_cast<int64_t>(self.nbytes()), 1 << 19, [&](int64_t begin, int64_t end) {
      std::memset(to + begin, 0, static_cast<size_t>(end - begin));
    });
    return self;
  }
  const char zeros[16] = {};
  fill_pattern(self, zeros);
  return self;
}

// ---- Ranges ----

namespace {
// Calls f(out) if `out` is contiguous, else f(a contiguous tensor), which is then copied to `out`.
template <class F>
void write_dense(Tensor& out, F&& f) {
  if (out.is_contiguous()) return f(out);
  Tensor dense = new_tensor(out.sizes(), out.scalar_type(), kCPU);
  f(dense);
  out.copy_(dense);
}

// The number of elements of an integer range, computed exactly.
int64_t whole_length(const char* op, int64_t start, int64_t end, int64_t step, bool inclusive) {
  __int128 span = static_cast<__int128>(end) - start;
  __int128 length = inclusive ? span / step + 1 : (span + step - (step > 0 ? 1 : -1)) / step;
  LAMELLA_CHECK(length <= INT64_MAX, op, ": expected a length that fits int64, got the range from ",
                start, " to ", end);
  return static_cast<int64_t>(length);
}
int64_t range_length(const char* op, const Scalar& start, const Scalar& end, const Scalar& step,
                     bool whole, bool inclusive) {
  double a = start.toDouble(), b = end.toDouble(), s = step.toDouble();
  LAMELLA_CHECK(s != 0, op, ": expected a 'step' other than 0");
  LAMELLA_CHECK(std::isfinite(a) && std::isfinite(b), op,
                ": expected finite 'start' and 'end', got ", start, " and ", end);
  bool integers = whole && start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  bool leads = s > 0 ? b >= a : b <= a;
  if (integers) leads = s > 0 ? end.toLong() >= start.toLong() : end.toLong() <= start.toLong();
  LAMELLA_CHECK(leads, op, ": expected 'step' to lead from ", start, " to ", end, ", got ", step);
  if (integers) return whole_length(op, start.toLong(), end.toLong(), step.toLong(), inclusive);
  double span = b - a;
  double length = inclusive ? std::floor(span / s) + 1 : std::ceil(span / s);
  LAMELLA_CHECK(length >= 0 && length < 9.2e18, op, ": expected a length that fits int64, got ",
                length);
  return static_cast<int64_t>(length);
}

void fill_range(const char* op, const Scalar& start, const Scalar& step, int64_t n, Tensor& out) {
  if (out.is_meta() || n == 0) return;
  const ScalarType dtype = signed_type(out.scalar_type());  // integers wrap
  write_dense(out, [&](Tensor& dense) {
    auto* to = static_cast<char*>(dense.data_ptr());
    if (dtype == kBool) {
      const auto first = static_cast<uint64_t>(start.to<int64_t>());
      const auto by = static_cast<uint64_t>(step.to<int64_t>());
      for (int64_t i = 0; i < n; ++i) to[i] = first + by * static_cast<uint64_t>(i) != 0;
      return;
    }
    LAMELLA_CHECK(!is_complex(dtype), op, ": expected a real dtype, got ", dtype);
    RangeFn range = range_on(kCPU, dtype);
    if (range == nullptr) lamella::detail::throw_dtype(op, dtype);
    RangeStart from{};
    if (is_integral(dtype, false)) {
      from.first_whole = static_cast<uint64_t>(start.to<int64_t>());
      from.step_whole = static_cast<uint64_t>(step.to<int64_t>());
    } else {
      from.first = start.to<double>();
      from.step = step.to<double>();
    }
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      range(to + begin * dense.element_size(), begin, end - begin, from);
    });
  });
}
}  // namespace

Tensor& arange_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  // As in PyTorch, only int64 results round fractional ends before the elements are counted.
  bool whole = is_integral(out.scalar_type(), true);
  int64_t n = out.scalar_type() == kLong &&
                      !(start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true))
                  ? range_length("arange", start.toLong(), end.toLong(), step.toLong(), true, false)
                  : range_length("arange", start, end, step, whole, false);
  if (out.numel() != n) resize_tensor(TensorImpl::of(out), {n});
  fill_range("arange", start, step, n, out);
  return out;
}
Tensor& range_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  int64_t n = range_length("range", start, end, step, is_integral(out.scalar_type(), true), true);
  if (out.numel() != n) resize_tensor(TensorImpl::of(out), {n});
  fill_range("range", start, step, n, out);
  return out;
}
Tensor& range_out_no_step(const Scalar& start, const Scalar& end, Tensor& out) {
  return native::range_out(start, end, Scalar(1), out);
}

namespace {
// The i-th of `steps` points; the second half counts from the end, which it meets exactly.
template <class T, class S>
S point(S start, S end, S step, int64_t i, int64_t steps) {
  return i < steps / 2 ? start + step * S(static_cast<double>(i))
                       : end - step * S(static_cast<double>(steps - i - 1));
}
template <class T>
struct PointType {
  using type = std::conditional_t<std::is_integral_v<T>, double, T>;
};
template <class T>
using point_type =
    std::conditional_t<lamella::detail::is_small_float_v<T>, float, typename PointType<T>::type>;
template <class T, class S>
T from_point(S value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}
template <class S>
S power(double base, S exponent) {
  if constexpr (is_complex_type_v<S>) {
    using R = typename S::value_type;
    auto value = std::pow(std::complex<R>(static_cast<R>(base)),
                          std::complex<R>(exponent.real(), exponent.imag()));
    return {value.real(), value.imag()};
  } else {
    return std::pow(static_cast<S>(base), exponent);
  }
}
}  // namespace

Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, Tensor& out) {
  LAMELLA_CHECK(steps >= 0, "linspace: expected 'steps' of at least 0, got ", steps);
  if (out.numel() != steps) resize_tensor(TensorImpl::of(out), {steps});
  if (out.is_meta() || steps == 0) return out;
  if (steps == 1) return native::fill_(out, start);
  write_dense(out, [&](Tensor& dense) {
    visit_numbers(dense.scalar_type(), "linspace", [&](auto tag) {
      using T = type_of<decltype(tag)>;
      using S = point_type<T>;
      S first = static_cast<S>(start.to<T>()), last = static_cast<S>(end.to<T>());
      S step = (last - first) / S(static_cast<double>(steps - 1));
      T* to = dense.mutable_data_ptr<T>();
      for (int64_t i = 0; i < steps; ++i) {
        to[i] = from_point<T>(point<T, S>(first, last, step, i, steps));
      }
    });
  });
  return out;
}
Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base,
                     Tensor& out) {
  LAMELLA_CHECK(steps >= 0, "logspace: expected 'steps' of at least 0, got ", steps);
  if (out.numel() != steps) resize_tensor(TensorImpl::of(out), {steps});
  if (out.is_meta() || steps == 0) return out;
  write_dense(out, [&](Tensor& dense) {
    visit_numbers(dense.scalar_type(), "logspace", [&](auto tag) {
      using T = type_of<decltype(tag)>;
      using S = point_type<T>;
      S first = static_cast<S>(start.to<T>()), last = static_cast<S>(end.to<T>());
      S step = steps == 1 ? S(0) : (last - first) / S(static_cast<double>(steps - 1));
      T* to = dense.mutable_data_ptr<T>();
      for (int64_t i = 0; i < steps; ++i) {
        S exponent = steps == 1 ? first : point<T, S>(first, last, step, i, steps);
        to[i] = from_point<T>(power(base, exponent));
      }
    });
  });
  return out;
}

namespace {
// The positions on and below a diagonal: row r has its first r + diagonal + 1 columns, limited to
// [0, columns].
struct Triangle {
  int64_t rows, columns, diagonal;

  Triangle(int64_t rows, int64_t columns, int64_t diagonal)
      : rows(rows),
        columns(columns),
        diagonal(diagonal < -rows     ? -rows
                 : diagonal > columns ? columns
                                      : diagonal) {}
  int64_t length(int64_t row) const {
    int64_t n = diagonal < columns - row ? row + diagonal + 1 : columns;
    return n < 0 ? 0 : n;
  }
  // The first row that is not empty, if there are any.
  int64_t first_row() const { return diagonal < 0 ? -diagonal : 0; }
  // The first row that has all columns, at least first_row().
  int64_t first_full() const {
    if (diagonal < columns - rows) return rows;
    int64_t full = columns - diagonal - 1;
    return full < first_row() ? first_row() : full;
  }
  int64_t count(const char* op) const {
    int64_t growing = first_full() - first_row();
    CheckedSize total = CheckedSize(rows - first_full(), op) * columns;
    if (growing == 0) return total.value();
    // The mean of the shortest and longest row times the number of rows; the even factor is halved.
    int64_t ends = (CheckedSize(length(first_row()), op) + length(first_full() - 1)).value();
    bool even = growing % 2 == 0;
    return (total + CheckedSize(even ? growing / 2 : growing, op) * (even ? ends : ends / 2))
        .value();
  }
};

Tensor triangle_indices(const char* op, int64_t row, int64_t col, int64_t offset, bool lower,
                        std::optional<ScalarType> dtype, std::optional<Device> device) {
  LAMELLA_CHECK(row >= 0 && col >= 0, op, ": expected 'row' and 'col' of at least 0, got ", row,
                " and ", col);
  // Row r of the upper triangle starts where the lower triangle of `offset - 1` ends. Its size is
  // that of the transpose's lower triangle.
  Triangle below(row, col, lower ? offset : offset == INT64_MIN ? offset : offset - 1);
  int64_t count = lower ? below.count(op)
                        : Triangle(col, row, offset == INT64_MIN ? INT64_MAX : -offset).count(op);
  Tensor result = new_tensor({2, count}, dtype.value_or(kLong), device.value_or(Device(kCPU)));
  if (result.is_meta() || count == 0) return result;
  int64_t first = lower ? below.first_row() : 0, last = lower ? row : below.first_full();
  visit_index(result.scalar_type(), op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    T* rows = result.mutable_data_ptr<T>();
    T* columns = rows + count;
    for (int64_t r = first; r < last; ++r) {
      int64_t edge = below.length(r);
      for (int64_t c = lower ? 0 : edge; c < (lower ? edge : col); ++c) {
        *rows++ = static_cast<T>(r);
        *columns++ = static_cast<T>(c);
      }
    }
  });
  return result;
}
}  // namespace
Tensor tril_indices_cpu(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device,
                        std::optional<bool> pin_memory) {
  return triangle_indices("tril_indices", row, col, offset, true, dtype, device);
}
Tensor triu_indices_cpu(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                        std::optional<Layout> layout, std::optional<Device> device,
                        std::optional<bool> pin_memory) {
  return triangle_indices("triu_indices", row, col, offset, false, dtype, device);
}

}  // namespace lamella::native
