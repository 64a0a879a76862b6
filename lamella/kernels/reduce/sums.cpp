// Sums, means, products, norms, variances and running sums.
#include <cmath>
#include <limits>

#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/cpu/scan.h"
#include "lamella/kernels/pointwise/pointwise.h"
#include "lamella/kernels/reduce/reduce_shape.h"

namespace lamella {
namespace {

using MaybeType = std::optional<ScalarType>;
using native::DimMask;

struct alignas(native::kParamBytes) Param {
  double value;
};

// The result's dtype: as asked for, that of a given output, or the input's with integers as int64.
ScalarType sum_dtype(const MetaBase& op, const Tensor& self, const MaybeType& dtype) {
  if (dtype.has_value()) return *dtype;
  if (op.output_mode() != MetaBase::OutputMode::kFunctional) return op.maybe_get_output(0).dtype();
  return is_integral(self.dtype(), true) ? kLong : self.dtype();
}
// Integers add up in int64, whatever they are stored as.
ScalarType sum_compute(ScalarType type) { return is_integral(type, true) ? kLong : type; }

// The tensor to sum for a result of `type`: for bool, elements are converted before the sum.
Tensor addends(const Tensor& self, ScalarType type) {
  return type == kBool && self.dtype() != kBool ? self.to(kBool) : self;
}

void set_reduced(MetaBase& op, const Tensor& self, DimMask mask, bool keepdim, ScalarType dtype) {
  native::ReducedShape shape = native::reduced_shape(self, mask, keepdim);
  op.set_output_raw_strided(0, shape.ref(), {}, TensorOptions(dtype).device(self.device()));
}

int64_t reduced_count(const Tensor& self, DimMask mask) {
  int64_t count = 1;
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    if (mask[d]) count *= self.sizes()[d];
  }
  return count;
}

}  // namespace

LAMELLA_META_OF2(sum, dim_IntList)
(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, MaybeType dtype) {
  DimMask mask = native::reduced_dims(op_name(), dim, self.dim());
  set_reduced(*this, self, mask, keepdim, sum_dtype(*this, self, dtype));
}
LAMELLA_IMPL_OF(sum_cpu)
(const Tensor& self, OptionalIntArrayRef dim, bool, MaybeType, const Tensor& out) {
  native::reduce_tensor(native::reduction<"sum">(), sum_compute(out.dtype()),
                        addends(self, out.dtype()), native::reduced_dims("sum", dim, self.dim()),
                        out);
}

LAMELLA_META_OF(nansum)
(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, MaybeType dtype) {
  LAMELLA_CHECK(!self.is_complex(), op_name(), ": expected 'self' to be real, got ", self.dtype());
  DimMask mask = native::reduced_dims(op_name(), dim, self.dim());
  set_reduced(*this, self, mask, keepdim, sum_dtype(*this, self, dtype));
}
LAMELLA_IMPL_OF(nansum_cpu)
(const Tensor& self, OptionalIntArrayRef dim, bool, MaybeType, const Tensor& out) {
  // For dtypes other than real floating point, where(isnan(self), 0, self) is summed.
  Tensor x = self;
  bool keeps_nan = is_floating_point(self.dtype()) && is_floating_point(out.dtype());
  if (is_floating_point(self.dtype()) && !keeps_nan) {
    x = lamella::where(lamella::isnan(self), Scalar(0), self);
  }
  native::reduce_tensor(keeps_nan ? native::reduction<"nansum">() : native::reduction<"sum">(),
                        sum_compute(out.dtype()), addends(x, out.dtype()),
                        native::reduced_dims("nansum", dim, self.dim()), out);
}

LAMELLA_META_OF2(mean, dim)
(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, MaybeType dtype) {
  ScalarType type = dtype.value_or(self.dtype());
  LAMELLA_CHECK(is_floating_point(type) || is_complex(type), op_name(), ": expected '",
                dtype ? "dtype" : "self", "' to be floating point or complex, got ", type,
                dtype ? "" : "; give a dtype to convert it first");
  if (!dtype && output_mode() != OutputMode::kFunctional) type = maybe_get_output(0).dtype();
  set_reduced(*this, self, native::reduced_dims(op_name(), dim, self.dim()), keepdim, type);
}
LAMELLA_IMPL_OF(mean_cpu)
(const Tensor& self, OptionalIntArrayRef dim, bool, MaybeType, const Tensor& out) {
  DimMask mask = native::reduced_dims("mean", dim, self.dim());
  Param params[] = {{static_cast<double>(reduced_count(self, mask))}};
  native::reduce_tensor(native::reduction<"mean">(), out.dtype(), self, mask, out, params);
}

LAMELLA_META_OF2(prod, dim_int)(const Tensor& self, int64_t dim, bool keepdim, MaybeType dtype) {
  DimMask mask = native::reduced_dims(op_name(), dim, self.dim());
  set_reduced(*this, self, mask, keepdim, sum_dtype(*this, self, dtype));
}
LAMELLA_IMPL_OF(prod_cpu)(const Tensor& self, int64_t dim, bool, MaybeType, const Tensor& out) {
  native::reduce_tensor(native::reduction<"prod">(), sum_compute(out.dtype()),
                        addends(self, out.dtype()), native::reduced_dims("prod", dim, self.dim()),
                        out);
}

// ---- Norms ----

LAMELLA_META_OF(linalg_vector_norm)
(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim, MaybeType dtype) {
  LAMELLA_CHECK(self.is_floating_point() || self.is_complex(), op_name(),
                ": expected 'self' to be floating point or complex, got ", self.dtype());
  LAMELLA_CHECK(!ord.isComplex(), op_name(), ": expected 'ord' to be real, got ", ord);
  if (dtype.has_value()) {
    LAMELLA_CHECK(is_floating_point(*dtype) || is_complex(*dtype), op_name(),
                  ": expected 'dtype' to be floating point or complex, got ", *dtype);
    LAMELLA_CHECK(is_complex(*dtype) == self.is_complex(), op_name(), ": expected 'dtype' to be ",
                  self.is_complex() ? "complex" : "real", " like 'self', got ", *dtype);
    LAMELLA_CHECK(promote_types(self.dtype(), *dtype) == *dtype, op_name(),
                  ": expected 'dtype' to be no narrower than 'self', ", self.dtype(), ", got ",
                  *dtype);
  }
  DimMask mask = native::reduced_dims(op_name(), dim, self.dim());
  double order = ord.toDouble();
  if (order < 0 || std::isinf(order)) native::check_not_empty(op_name(), self, mask);
  set_reduced(*this, self, mask, keepdim, to_real_type(dtype.value_or(self.dtype())));
}
LAMELLA_IMPL_OF(linalg_vector_norm_cpu)
(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool, MaybeType,
 const Tensor& out) {
  DimMask mask = native::reduced_dims("linalg_vector_norm", dim, self.dim());
  double order = ord.toDouble();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const native::ReduceTable& table = order == 0            ? native::reduction<"norm0">()
                                     : order == 1          ? native::reduction<"norm1">()
                                     : order == 2          ? native::reduction<"norm2">()
                                     : order == 3          ? native::reduction<"norm3">()
                                     : order == kInfinity  ? native::reduction<"norm_max">()
                                     : order == -kInfinity ? native::reduction<"norm_min">()
                                                           : native::reduction<"norm_general">();
  Param params[] = {{order}};
  Tensor real = self.is_complex() ? lamella::abs(self) : self;
  native::reduce_tensor(table, out.dtype(), real, mask, out, params);
}

// ---- Variances ----

namespace {

void var_meta(MetaBase& op, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  LAMELLA_CHECK(self.is_floating_point() || self.is_complex(), op.op_name(),
                ": expected 'self' to be floating point or complex, got ", self.dtype());
  set_reduced(op, self, native::reduced_dims(op.op_name(), dim, self.dim()), keepdim,
              to_real_type(self.dtype()));
}
// Real or imaginary parts as a view.
TensorBase part(const Tensor& self, int64_t which) {
  int64_t strides[64];
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) strides[d] = self.strides()[d] * 2;
  return make_view_as(self, self.sizes(), {strides, static_cast<size_t>(self.dim())},
                      self.storage_offset() * 2 + which, to_real_type(self.dtype()));
}
void var_impl(const char* op, const Tensor& self, OptionalIntArrayRef dim,
              const std::optional<Scalar>& correction, const Tensor& out, bool root) {
  DimMask mask = native::reduced_dims(op, dim, self.dim());
  Param params[] = {{correction ? correction->toDouble() : 1.0}, {root ? 1.0 : 0.0}};
  const native::ReduceTable& table = native::reduction<"var">();
  if (!self.is_complex()) {
    native::reduce_tensor(table, self.dtype(), self, mask, out, params);
    return;
  }
  // The distance from the mean has two parts at right angles.
  params[1].value = 0;
  Tensor sum(make_empty(out.sizes(), kDouble, self.device())),
      imaginary(make_empty_like(sum, kDouble, self.device()));
  native::reduce_tensor(table, kDouble, part(self, 0), mask, sum, params);
  native::reduce_tensor(table, kDouble, part(self, 1), mask, imaginary, params);
  sum.add_(imaginary);
  if (root) sum.sqrt_();
  out.copy_(sum);
}

}  // namespace

LAMELLA_META_OF2(var, correction)
(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>&, bool keepdim) {
  var_meta(*this, self, dim, keepdim);
}
LAMELLA_IMPL_OF(var_cpu)
(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction, bool,
 const Tensor& out) {
  var_impl("var", self, dim, correction, out, false);
}
LAMELLA_META_OF2(std, correction)
(const Tensor& self, OptionalIntArrayRef dim, const ::std::optional<Scalar>&, bool keepdim) {
  var_meta(*this, self, dim, keepdim);
}
LAMELLA_IMPL_OF(std_cpu)
(const Tensor& self, OptionalIntArrayRef dim, const ::std::optional<Scalar>& correction, bool,
 const Tensor& out) {
  var_impl("std", self, dim, correction, out, true);
}

// ---- Running sums and products ----

namespace {
void scan_meta(MetaBase& op, const Tensor& self, int64_t dim, const MaybeType& dtype) {
  maybe_wrap_dim(dim, self.dim(), op.op_name());
  ScalarType type = dtype.has_value() ? *dtype
                    : op.output_mode() != MetaBase::OutputMode::kFunctional
                        ? op.maybe_get_output(0).dtype()
                    : is_integral(self.dtype(), true) ? kLong
                                                      : self.dtype();
  op.set_output_raw_strided(0, self.sizes(), {}, TensorOptions(type).device(self.device()));
}
}  // namespace

LAMELLA_META_OF(cumsum)(const Tensor& self, int64_t dim, MaybeType dtype) {
  scan_meta(*this, self, dim, dtype);
}
LAMELLA_IMPL_OF(cumsum_cpu)(const Tensor& self, int64_t dim, MaybeType, const Tensor& out) {
  native::scan(native::Scan::kSum, self, maybe_wrap_dim(dim, self.dim()), out);
}
LAMELLA_META_OF(cumprod)(const Tensor& self, int64_t dim, MaybeType dtype) {
  scan_meta(*this, self, dim, dtype);
}
LAMELLA_IMPL_OF(cumprod_cpu)(const Tensor& self, int64_t dim, MaybeType, const Tensor& out) {
  native::scan(native::Scan::kProduct, self, maybe_wrap_dim(dim, self.dim()), out);
}
LAMELLA_META_OF(logcumsumexp)(const Tensor& self, int64_t dim) {
  LAMELLA_CHECK(self.is_floating_point() || self.is_complex(), op_name(),
                ": expected 'self' to be floating point or complex, got ", self.dtype());
  scan_meta(*this, self, dim, self.dtype());
}
LAMELLA_IMPL_OF(logcumsumexp_cpu)(const Tensor& self, int64_t dim, const Tensor& out) {
  native::scan(native::Scan::kLogSumExp, self, maybe_wrap_dim(dim, self.dim()), out);
}

}  // namespace lamella
