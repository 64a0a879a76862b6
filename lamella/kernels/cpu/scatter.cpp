// scatter and its reductions: elements of src, or a number, are written to out[..., index, ...] or
// combined with the elements there.
#include <cmath>

#include "lamella/kernels/cpu/offset_loop.h"

namespace lamella {

namespace {

void check_scatter(const MetaBase& output, const char* op, const Tensor& self, int64_t dim,
                   const Tensor& index, const Tensor* src) {
  output.check_no_overlap(0, "index", index);
  if (src != nullptr) output.check_no_overlap(0, "src", *src);
  dim = maybe_wrap_dim(dim, self.dim(), op);
  LAMELLA_CHECK(index.numel() == 0 || index.scalar_type() == kLong || index.scalar_type() == kInt,
                op, ": expected 'index' to be int64 or int32, got ", index.scalar_type());
  if (src != nullptr) {
    LAMELLA_CHECK(src->scalar_type() == self.scalar_type(), op, ": expected 'src' to be ",
                  self.scalar_type(), ", got ", src->scalar_type());
  }
  if (index.numel() == 0) return;
  auto rank = [](const Tensor& t) { return t.dim() == 0 ? 1 : t.dim(); };
  auto extent = [](const Tensor& t, int64_t d) {
    return t.dim() == 0 ? 1 : t.sizes()[static_cast<size_t>(d)];
  };
  LAMELLA_CHECK(rank(index) == rank(self), op, ": expected 'index' to have ", rank(self),
                " dimensions as 'self' does, got ", index.sizes());
  LAMELLA_CHECK(src == nullptr || rank(*src) == rank(index), op, ": expected 'src' to have ",
                rank(index), " dimensions as 'index' does, got ",
                src ? src->sizes() : IntArrayRef());
  for (int64_t d = 0; d < rank(index); ++d) {
    LAMELLA_CHECK(d == dim || extent(index, d) <= extent(self, d), op,
                  ": expected 'index' to be no larger than 'self' except in dimension ", dim,
                  ", got ", index.sizes(), " for ", self.sizes());
    LAMELLA_CHECK(src == nullptr || extent(index, d) <= extent(*src, d), op,
                  ": expected 'index' to be no larger than 'src', got ", index.sizes(), " for ",
                  src ? src->sizes() : IntArrayRef());
  }
}

}  // namespace

namespace meta {
LAMELLA_META_FUNC2(scatter, src)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter(*this, "scatter", self, dim, index, &src);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC2(scatter, value)
(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_scatter(*this, "scatter", self, dim, index, nullptr);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC2(scatter, reduce)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  check_scatter(*this, "scatter", self, dim, index, &src);
  LAMELLA_CHECK(reduce == "add" || reduce == "multiply",
                "scatter: expected 'reduce' to be add or multiply, got '", reduce, "'");
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC2(scatter, value_reduce)
(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
 std::string_view reduce) {
  check_scatter(*this, "scatter", self, dim, index, nullptr);
  LAMELLA_CHECK(reduce == "add" || reduce == "multiply",
                "scatter: expected 'reduce' to be add or multiply, got '", reduce, "'");
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC(scatter_add)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter(*this, "scatter_add", self, dim, index, &src);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC2(scatter_reduce, two)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
 bool include_self) {
  check_scatter(*this, "scatter_reduce", self, dim, index, &src);
  native::ScatterMode mode = native::scatter_mode("scatter_reduce", reduce);
  bool ordered = mode == native::ScatterMode::kMaximum || mode == native::ScatterMode::kMinimum;
  LAMELLA_CHECK_NOT_IMPLEMENTED(!ordered || !self.is_complex(),
                                "scatter_reduce: expected 'self' to be real for 'reduce' ", reduce,
                                ", got ", self.scalar_type());
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
}  // namespace meta

namespace native {

namespace {
Places places_in(const char* op, const Tensor& out, int64_t dim, const Tensor& index) {
  return places_along(op, out, maybe_wrap_dim(dim, out.dim(), op), index, false, out);
}
void scatter_into(const char* op, const Tensor& out, int64_t dim, const Places& places,
                  const void* values, IntArrayRef value_strides, ScatterMode mode) {
  const Tensor& index = places.index;
  if (index.numel() == 0) return;
  dim = maybe_wrap_dim(dim, out.dim(), op);
  auto n = static_cast<size_t>(index.dim());
  Dims to(out.strides());
  to.resize(n, 0);
  if (n != 0) to[static_cast<size_t>(dim)] = 0;
  Dims from(value_strides);
  from.resize(n, 0);
  StridedLoop<3> loop(index.sizes());
  loop.operand(0, out.data_ptr(), to, out.itemsize());
  loop.operand(1, values, from, out.itemsize());
  loop.operand(2, index.data_ptr(), index.strides(), sizeof(int64_t));
  loop.plan(true);
  scatter_elements(op, loop, out.scalar_type(), mode, places);
}
void scatter_tensor(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor& src, const Tensor& out, ScatterMode mode) {
  Places places = places_in(op, out, dim, index);
  if (!out.is_same(self)) const_cast<Tensor&>(out).copy_(self);
  scatter_into(op, out, dim, places, src.data_ptr(), src.strides(), mode);
}
void scatter_number(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                    const Scalar& value, const Tensor& out, ScatterMode mode) {
  Places places = places_in(op, out, dim, index);
  Tensor number = lamella::scalar_tensor(value, out.scalar_type());
  if (!out.is_same(self)) const_cast<Tensor&>(out).copy_(self);
  scatter_into(op, out, dim, places, number.data_ptr(), IntArrayRef(), mode);
}
}  // namespace

LAMELLA_IMPL_FUNC(scatter_src_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  scatter_tensor("scatter", self, dim, index, src, out, ScatterMode::kAssign);
}
LAMELLA_IMPL_FUNC(scatter_value_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, const Tensor& out) {
  scatter_number("scatter", self, dim, index, value, out, ScatterMode::kAssign);
}
LAMELLA_IMPL_FUNC(scatter_reduce_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
 const Tensor& out) {
  scatter_tensor("scatter", self, dim, index, src, out, scatter_mode("scatter", reduce));
}
LAMELLA_IMPL_FUNC(scatter_value_reduce_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce,
 const Tensor& out) {
  scatter_number("scatter", self, dim, index, value, out, scatter_mode("scatter", reduce));
}
LAMELLA_IMPL_FUNC(scatter_add_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const Tensor& out) {
  scatter_tensor("scatter_add", self, dim, index, src, out, ScatterMode::kAdd);
}

namespace {
// The neutral value from which a written place starts if its own value is excluded.
Scalar neutral_value(ScatterMode mode, ScalarType dtype) {
  bool whole = is_integral(dtype, true);
  auto extreme = [&](bool most) -> Scalar {
    if (!whole) return Scalar(most ? HUGE_VAL : -HUGE_VAL);
    if (dtype == kBool) return Scalar(most);
    if (dtype == kByte) return Scalar(most ? int64_t{255} : int64_t{0});
    int bits = static_cast<int>(element_size(dtype)) * 8;
    int64_t top = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    return Scalar(most ? top : -top - 1);
  };
  switch (mode) {
    case ScatterMode::kMultiply:
      return Scalar(1);
    case ScatterMode::kMaximum:
      return extreme(false);
    case ScatterMode::kMinimum:
      return extreme(true);
    default:
      return Scalar(0);
  }
}
}  // namespace

LAMELLA_IMPL_FUNC(scatter_reduce_two_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
 bool include_self, const Tensor& out) {
  const char* op = "scatter_reduce";
  ScatterMode mode = scatter_mode(op, reduce);
  Places places = places_in(op, out, dim, index);
  if (!out.is_same(self)) const_cast<Tensor&>(out).copy_(self);
  if (!include_self) {
    Tensor start =
        lamella::scalar_tensor(neutral_value(mode, out.scalar_type()), out.scalar_type());
    scatter_into(op, out, dim, places, start.data_ptr(), IntArrayRef(), ScatterMode::kAssign);
  }
  scatter_into(op, out, dim, places, src.data_ptr(), src.strides(), mode);
  if (mode != ScatterMode::kMean) return;
  Tensor count = include_self ? lamella::ones_like(out) : lamella::zeros_like(out);
  Tensor one = lamella::scalar_tensor(1, out.scalar_type());
  scatter_into(op, count, dim, places_in(op, count, dim, index), one.data_ptr(), IntArrayRef(),
               ScatterMode::kAdd);
  count.masked_fill_(count.eq(0), 1);
  if (is_floating_point(out.scalar_type()) || is_complex(out.scalar_type())) {
    const_cast<Tensor&>(out).div_(count);
  } else {
    const_cast<Tensor&>(out).div_(count, "floor");
  }
}

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  const char* op = "index_reduce";
  LAMELLA_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin", op,
                ": expected 'reduce' to be prod, mean, amax or amin, got '", reduce, "'");
  LAMELLA_CHECK(index.dim() <= 1, op, ": expected 'index' to have at most one dimension, got ",
                index.sizes());
  dim = maybe_wrap_dim(dim, self.dim(), op);
  Dims expected(self.sizes());
  if (self.dim() > 0) expected[static_cast<size_t>(dim)] = index.numel();
  bool fits =
      source.sizes().equals(expected) || (self.dim() <= 1 && source.numel() == index.numel());
  LAMELLA_CHECK(fits, op, ": expected 'source' to be of shape ", expected, ", got ",
                source.sizes());
  // Slices are scattered as their elements are, with one index for the whole slice.
  Dims shape(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 0) shape[static_cast<size_t>(dim)] = index.numel();
  Tensor spread = index.reshape(shape).expand(expected);
  return lamella::scatter_reduce(self, dim, spread, source.reshape(expected), reduce, include_self);
}

}  // namespace native
}  // namespace lamella
