// Indexing by one index tensor along a dimension: index_select, gather, index_add, index_copy,
// index_fill, take, put_.
#include <algorithm>
#include <cstring>

#include "lamella/kernels/cpu/fill.h"
#include "lamella/kernels/cpu/offset_loop.h"

namespace lamella {

namespace {
void check_index_dtype(const char* op, const Tensor& index) {
  LAMELLA_CHECK(index.scalar_type() == kLong || index.scalar_type() == kInt, op,
                ": expected 'index' to be int64 or int32, got ", index.scalar_type());
}
void check_list(const char* op, const Tensor& index) {
  check_index_dtype(op, index);
  LAMELLA_CHECK_INDEX(index.dim() <= 1, op, ": expected 'index' to have at most one dimension, ",
                      "got ", index.sizes());
}
// `source` has the shape of self with the size of `dim` replaced by the number of indices.
void check_source(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& source) {
  check_list(op, index);
  LAMELLA_CHECK(self.scalar_type() == source.scalar_type(), op, ": expected 'source' to be ",
                self.scalar_type(), ", got ", source.scalar_type());
  native::Dims expected(self.sizes());
  if (self.dim() > 0) expected[static_cast<size_t>(dim)] = index.numel();
  LAMELLA_CHECK(self.dim() > 0 || index.numel() == 1, op,
                ": expected 'index' to have one element for a 'self' without dimensions, got ",
                index.numel());
  bool scalar_like = self.dim() <= 1 && source.dim() <= 1 && source.numel() == index.numel();
  LAMELLA_CHECK(scalar_like || source.sizes().equals(expected), op,
                ": expected 'source' to be of shape ", expected, ", got ", source.sizes());
}
}  // namespace

namespace native {

namespace {
// target[..., index[i], ...] = op(target, source[..., i, ...]), at the places of the indices.
void scatter_slices(const char* op, const Tensor& target, int64_t dim, const Places& places,
                    const Tensor& source, IntArrayRef source_strides, ScatterMode mode) {
  const int64_t count = places.index.numel();
  if (count == 0 || target.numel() == 0) return;
  const int64_t step = places.index.dim() == 0 ? 0 : places.index.strides()[0];
  Dims shape(target.sizes());
  Dims to(target.strides());
  Dims at(shape.size(), 0);
  if (shape.empty()) {
    shape.push_back(1);
    to.push_back(0);
    at.push_back(step);
  }
  shape[static_cast<size_t>(dim)] = count;
  to[static_cast<size_t>(dim)] = 0;
  at[static_cast<size_t>(dim)] = step;
  Dims from(source_strides);
  if (from.size() < shape.size()) from.insert(0, 1);
  StridedLoop<3> loop(shape);
  loop.operand(0, target.data_ptr(), to, target.itemsize());
  loop.operand(1, source.data_ptr(), from, target.itemsize());
  loop.operand(2, places.index.data_ptr(), at, sizeof(int64_t));
  loop.plan();
  scatter_elements(op, loop, target.scalar_type(), mode, places);
}
}  // namespace

Tensor& index_select_out(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  LAMELLA_CHECK(out.scalar_type() == self.scalar_type(), "index_select: expected 'out' to be ",
                self.scalar_type(), ", got ", out.scalar_type());
  check_list("index_select", index);
  dim = maybe_wrap_dim(dim, self.dim(), "index_select");
  Dims shape(self.sizes());
  if (self.dim() > 0) shape[static_cast<size_t>(dim)] = index.numel();
  LAMELLA_CHECK_INDEX(self.dim() > 0 || index.numel() == 1,
                      "index_select: expected one 'index' for a tensor without dimensions, got ",
                      index.numel());
  check_no_internal_overlap("index_select", "out", out);
  check_no_overlap("index_select", "out", out, "self", self);
  check_no_overlap("index_select", "out", out, "index", index);
  if (may_share_memory(out, self) || may_share_memory(out, index)) {
    Tensor result = index_select(self, dim, index);
    resize_output(out, result.sizes());
    return out.copy_(result);
  }
  resize_output(out, shape);
  if (!self.is_meta()) index_select_into("index_select", self, dim, index, out, false);
  return out;
}
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  Tensor out = new_tensor({0}, self.scalar_type(), self.device());
  index_select_out(self, dim, index, out);
  return out;
}

Tensor& index_fill_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_list("index_fill_", index);
  warn_of_shared_elements("index_fill_", self);
  check_no_overlap("index_fill_", "self", self, "index", index);
  dim = maybe_wrap_dim(dim, self.dim(), "index_fill_");
  LAMELLA_CHECK(!value.isComplex() || self.is_complex(),
                "index_fill_: expected 'value' to be real for a tensor of ", self.scalar_type(),
                ", got ", value);
  if (self.is_meta()) return self;
  Tensor source = lamella::scalar_tensor(value, self.scalar_type());
  Dims strides(static_cast<size_t>(self.dim() == 0 ? 1 : self.dim()), 0);
  Places places = places_along("index_fill_", self, dim, index, true, self);
  scatter_slices("index_fill_", self, dim, places, source, strides, ScatterMode::kAssign);
  return self;
}
Tensor& index_fill_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  LAMELLA_CHECK(value.dim() == 0, "index_fill_: expected 'value' to have no dimensions, got ",
                value.sizes());
  if (self.is_meta()) return self;
  return self.index_fill_(dim, index, number_for(self.scalar_type(), value));
}
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  Tensor result = self.clone(MemoryFormat::Preserve);
  result.index_fill_(dim, index, value);
  return result;
}
Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  Tensor result = self.clone(MemoryFormat::Preserve);
  result.index_fill_(dim, index, value);
  return result;
}

// ---- take and put_: indices into the tensor as if it were flat ----

Tensor& take_out(const Tensor& self, const Tensor& index, Tensor& out) {
  check_index_dtype("take", index);
  LAMELLA_CHECK(out.scalar_type() == self.scalar_type(), "take: expected 'out' to be ",
                self.scalar_type(), ", got ", out.scalar_type());
  LAMELLA_CHECK_INDEX(self.numel() != 0 || index.numel() == 0,
                      "take: expected 'self' to have elements, got ", self.sizes());
  check_no_internal_overlap("take", "out", out);
  check_no_overlap("take", "out", out, "self", self);
  check_no_overlap("take", "out", out, "index", index);
  if (may_share_memory(out, self) || may_share_memory(out, index)) {
    Tensor result = take(self, index);
    resize_output(out, result.sizes());
    return out.copy_(result);
  }
  resize_output(out, index.sizes());
  if (self.is_meta()) return out;
  Tensor flat = self.contiguous().view({-1});
  Places places = places_of("take", flat.numel(), flat.element_size(), index, true, out);
  if (index.numel() == 0) return out;
  StridedLoop<3> loop(out.sizes());
  loop.operand(0, out.data_ptr(), out.strides(), out.itemsize());
  loop.operand(1, flat.data_ptr(), Dims(out.sizes().size(), 0), out.itemsize());
  loop.operand(2, places.index.data_ptr(), places.index.strides(), sizeof(int64_t));
  loop.plan();
  gather_elements(loop, out.itemsize(), places);
  return out;
}
Tensor take(const Tensor& self, const Tensor& index) {
  Tensor out = new_tensor(index.sizes(), self.scalar_type(), self.device());
  take_out(self, index, out);
  return out;
}
Tensor& put_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check_index_dtype("put_", index);
  LAMELLA_CHECK(source.scalar_type() == self.scalar_type(), "put_: expected 'source' to be ",
                self.scalar_type(), ", got ", source.scalar_type());
  LAMELLA_CHECK(index.numel() == source.numel(), "put_: expected 'source' to have ", index.numel(),
                " elements as 'index' does, got ", source.numel());
  check_no_internal_overlap("put_", "self", self);
  check_no_overlap("put_", "self", self, "index", index);
  check_no_overlap("put_", "self", self, "source", source);
  if (self.is_meta() || index.numel() == 0) return self;
  Tensor flat = self.contiguous();
  Tensor values =
      may_share_memory(self, source) ? source.clone(MemoryFormat::Contiguous) : source.contiguous();
  Places places =
      places_of("put_", flat.numel(), flat.element_size(), index.reshape({-1}), true, flat);
  const int64_t count = index.numel();
  StridedLoop<3> loop{IntArrayRef(count)};
  loop.operand(0, flat.data_ptr(), {0}, self.itemsize());
  loop.operand(1, values.data_ptr(), {1}, self.itemsize());
  loop.operand(2, places.index.data_ptr(), places.index.strides(), sizeof(int64_t));
  loop.plan();
  scatter_elements("put_", loop, self.scalar_type(),
                   accumulate ? ScatterMode::kAdd : ScatterMode::kAssign, places);
  if (!flat.is_same(self)) self.copy_(flat);
  return self;
}

}  // namespace native

// ---- gather ----

namespace meta {
LAMELLA_META_FUNC(gather)(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  dim = maybe_wrap_dim(dim, self.dim(), "gather");
  if (index.numel() != 0) check_index_dtype("gather", index);
  check_no_overlap(0, "self", self);
  auto rank = [](const Tensor& t) { return t.dim() == 0 ? 1 : t.dim(); };
  if (index.numel() != 0) {
    LAMELLA_CHECK(rank(index) == rank(self), "gather: expected 'index' to have ", rank(self),
                  " dimensions as 'self' does, got ", index.sizes());
    for (int64_t d = 0; d < index.dim() && self.dim() > 0; ++d) {
      auto i = static_cast<size_t>(d);
      LAMELLA_CHECK(d == dim || index.sizes()[i] <= self.sizes()[i],
                    "gather: expected 'index' to be no larger than 'self' except in dimension ",
                    dim, ", got ", index.sizes(), " for ", self.sizes());
    }
  }
  set_output_raw_strided(0, index.sizes(), {}, self.options());
}
LAMELLA_META_FUNC(index_add)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  dim = maybe_wrap_dim(dim, self.dim(), "index_add");
  check_source("index_add", self, dim, index, source);
  check_no_overlap(0, "index", index);
  check_no_overlap(0, "source", source);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC(index_copy)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  dim = maybe_wrap_dim(dim, self.dim(), "index_copy");
  check_source("index_copy", self, dim, index, source);
  check_no_overlap(0, "index", index);
  check_no_overlap(0, "source", source);
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
}  // namespace meta

namespace native {

LAMELLA_IMPL_FUNC(gather_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad, const Tensor& out) {
  if (index.numel() == 0) return;
  dim = maybe_wrap_dim(dim, self.dim(), "gather");
  Places places = places_along("gather", self, dim, index, false, out);
  Dims from(self.strides());
  from.resize(static_cast<size_t>(index.dim()), 0);
  if (!from.empty()) from[static_cast<size_t>(dim)] = 0;
  StridedLoop<3> loop(out.sizes());
  loop.operand(0, out.data_ptr(), out.strides(), out.itemsize());
  loop.operand(1, self.data_ptr(), from, out.itemsize());
  loop.operand(2, places.index.data_ptr(), places.index.strides(), sizeof(int64_t));
  loop.plan();
  gather_elements(loop, out.itemsize(), places);
}

LAMELLA_IMPL_FUNC(index_add_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha,
 const Tensor& out) {
  dim = maybe_wrap_dim(dim, self.dim(), "index_add");
  Places places = places_along("index_add", out, dim, index, false, out);
  // alpha is converted to the dtype of `self`.
  Tensor scaled =
      alpha.equal(1) ? source : source.mul(lamella::scalar_tensor(alpha, source.scalar_type()));
  if (!out.is_same(self)) const_cast<Tensor&>(out).copy_(self);
  scatter_slices("index_add", out, dim, places, scaled, scaled.strides(), ScatterMode::kAdd);
}

LAMELLA_IMPL_FUNC(index_copy_cpu)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Tensor& out) {
  dim = maybe_wrap_dim(dim, self.dim(), "index_copy");
  Places places = places_along("index_copy", out, dim, index, true, out);
  if (!out.is_same(self)) const_cast<Tensor&>(out).copy_(self);
  scatter_slices("index_copy", out, dim, places, source, source.strides(), ScatterMode::kAssign);
}

}  // namespace native
}  // namespace lamella
