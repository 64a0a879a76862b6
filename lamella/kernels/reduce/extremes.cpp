// Largest and smallest elements and their places; all, any and counts.
#include "lamella/core/tensor_impl.h"
#include "lamella/kernels/cpu/pointwise.h"
#include "lamella/kernels/pointwise/pointwise.h"
#include "lamella/kernels/reduce/reduce_shape.h"

namespace lamella {
namespace {

using native::DimMask;

void set_reduced(MetaBase& op, int i, const Tensor& self, DimMask mask, bool keepdim,
                 ScalarType dtype) {
  native::ReducedShape shape = native::reduced_shape(self, mask, keepdim);
  op.set_output_raw_strided(i, shape.ref(), {}, TensorOptions(dtype).device(self.device()));
}
// Booleans are ordered as bytes.
ScalarType ordered_as(const Tensor& self) { return self.dtype() == kBool ? kByte : self.dtype(); }
void check_real(const char* op, const Tensor& self) {
  LAMELLA_CHECK(!self.is_complex(), op, ": expected 'self' to be real, got ", self.dtype());
}
// Throws if there are no elements: IndexError if the dimension was named, else Error.
void check_not_empty(const char* op, const Tensor& self, DimMask mask, bool named) {
  LAMELLA_CHECK(named || self.numel() != 0, op, ": expected 'self' to have elements, got shape ",
                self.sizes());
  native::check_not_empty(op, self, mask);
}

}  // namespace

#define LAMELLA_EXTREME(op, table)                                                          \
  LAMELLA_META_OF(op)(const Tensor& self, IntArrayRef dim, bool keepdim) {                  \
    check_real(op_name(), self);                                                            \
    DimMask mask = native::reduced_dims(op_name(), dim, self.dim());                        \
    check_not_empty(op_name(), self, mask, !dim.empty());                                   \
    set_reduced(*this, 0, self, mask, keepdim, self.dtype());                               \
  }                                                                                         \
  LAMELLA_IMPL_OF(op##_cpu)(const Tensor& self, IntArrayRef dim, bool, const Tensor& out) { \
    native::reduce_tensor(native::reduction<table>(), ordered_as(self), self,               \
                          native::reduced_dims(#op, dim, self.dim()), out);                 \
  }
LAMELLA_EXTREME(amax, "max")
LAMELLA_EXTREME(amin, "min")

LAMELLA_META_OF(aminmax)(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  check_real(op_name(), self);
  DimMask mask = native::reduced_dims(op_name(), dim, self.dim());
  check_not_empty(op_name(), self, mask, dim.has_value());
  set_reduced(*this, 0, self, mask, keepdim, self.dtype());
  set_reduced(*this, 1, self, mask, keepdim, self.dtype());
}
LAMELLA_IMPL_OF(aminmax_cpu)
(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& min, const Tensor& max) {
  native::reduce_tensor(native::reduction<"aminmax">(), ordered_as(self), self,
                        native::reduced_dims("aminmax", dim, self.dim()), min, nullptr, max);
}

#define LAMELLA_EXTREME_DIM(op, stub)                                                            \
  LAMELLA_META_OF2(op, dim)(const Tensor& self, int64_t dim, bool keepdim) {                     \
    check_real(op_name(), self);                                                                 \
    DimMask mask = native::reduced_dims(op_name(), dim, self.dim());                             \
    native::check_not_empty(op_name(), self, mask);                                              \
    set_reduced(*this, 0, self, mask, keepdim, self.dtype());                                    \
    set_reduced(*this, 1, self, mask, keepdim, kLong);                                           \
  }                                                                                              \
  LAMELLA_IMPL_OF(op##_dim_cpu)                                                                  \
  (const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {         \
    native::reduce_tensor(native::reduction<stub>(), ordered_as(self), self,                     \
                          native::reduced_dims(#op, dim, self.dim()), indices, nullptr, values); \
  }
LAMELLA_EXTREME_DIM(max, "argmax")
LAMELLA_EXTREME_DIM(min, "argmin")

namespace {

void arg_meta(MetaBase& op, const Tensor& self, const std::optional<int64_t>& dim, bool keepdim) {
  check_real(op.op_name(), self);
  LAMELLA_CHECK(self.dtype() != kBool, op.op_name(), ": expected 'self' not to be bool");
  DimMask mask;
  if (dim.has_value()) {
    mask = native::reduced_dims(op.op_name(), *dim, self.dim());
  } else {
    mask.set();
  }
  native::check_not_empty(op.op_name(), self, mask);
  set_reduced(op, 0, self, mask, keepdim, kLong);
}
void arg_impl(const native::ReduceTable& table, const char* op, const Tensor& self,
              const std::optional<int64_t>& dim, const Tensor& out) {
  if (dim.has_value()) {
    native::reduce_tensor(table, self.dtype(), self, native::reduced_dims(op, *dim, self.dim()),
                          out);
    return;
  }
  // All elements in row-major order: one dimension.
  TensorBase dense = self;
  if (!self.is_contiguous()) {
    if (self.device() != kCPU) {
      dense = self.contiguous();
    } else {
      dense = make_empty(self.sizes(), self.dtype(), kCPU);
      native::copy_converted(dense, self);
    }
  }
  int64_t size = self.numel(), stride = 1;
  TensorBase flat = make_view(dense, size, stride, dense.storage_offset());
  TensorBase place = make_view(out, {}, {}, out.storage_offset());
  native::reduce_tensor(table, self.dtype(), flat, 1, place);
}

}  // namespace

LAMELLA_META_OF(argmax)(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  arg_meta(*this, self, dim, keepdim);
}
LAMELLA_IMPL_OF(argmax_cpu)
(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  arg_impl(native::reduction<"argmax">(), "argmax", self, dim, out);
}
LAMELLA_META_OF(argmin)(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  arg_meta(*this, self, dim, keepdim);
}
LAMELLA_IMPL_OF(argmin_cpu)
(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  arg_impl(native::reduction<"argmin">(), "argmin", self, dim, out);
}

// ---- Truth ----

namespace {
void truth_meta(MetaBase& op, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  // uint8 is an older spelling of bool, and stays.
  ScalarType type = self.dtype() == kByte ? kByte : kBool;
  if (op.output_mode() != MetaBase::OutputMode::kFunctional) {
    ScalarType given = op.maybe_get_output(0).dtype();
    if (given == kByte || given == kBool) type = given;
  }
  set_reduced(op, 0, self, native::reduced_dims(op.op_name(), dim, self.dim(), false), keepdim,
              type);
}
// complex32 has no loops of its own.
Tensor with_loops(const Tensor& self) {
  return self.scalar_type() == kComplexHalf ? self.to(kComplexFloat) : self;
}
}  // namespace
#define LAMELLA_TRUTH(op)                                                                 \
  LAMELLA_META_OF2(op, dims)(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) { \
    truth_meta(*this, self, dim, keepdim);                                                \
  }                                                                                       \
  LAMELLA_IMPL_OF(op##_cpu)                                                               \
  (const Tensor& self, OptionalIntArrayRef dim, bool, const Tensor& out) {                \
    native::reduce_tensor(native::reduction<#op>(), kBool, with_loops(self),              \
                          native::reduced_dims(#op, dim, self.dim(), false), out);        \
  }
LAMELLA_TRUTH(all)
LAMELLA_TRUTH(any)

LAMELLA_META_OF2(count_nonzero, dim_IntList)(const Tensor& self, IntArrayRef dim) {
  set_reduced(*this, 0, self, native::reduced_dims(op_name(), dim, self.dim()), false, kLong);
}
LAMELLA_IMPL_OF(count_nonzero_cpu)(const Tensor& self, IntArrayRef dim, const Tensor& out) {
  native::reduce_tensor(native::reduction<"count">(), kBool, with_loops(self),
                        native::reduced_dims("count_nonzero", dim, self.dim()), out);
}

}  // namespace lamella
