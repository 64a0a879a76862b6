// Operators of three tensors: bounds, choice, interpolation, fused multiplication.
#include <cmath>

#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {

constexpr uint32_t kPromoted = TensorIteratorBase::kPointwise;
constexpr const char* kSelf[] = {"self"};
constexpr const char* kMin[] = {"self", "min"};
constexpr const char* kMax[] = {"self", "max"};
constexpr const char* kMinMax[] = {"self", "min", "max"};

using Number = std::optional<Scalar>;
using MaybeTensor = std::optional<Tensor>;

bool is_given(const MaybeTensor& tensor) { return tensor.has_value() && tensor->defined(); }
void check_bounds(const char* op, bool any) {
  LAMELLA_CHECK(any, op, ": expected 'min' or 'max' to be given, got None for both");
}
bool is_nan(const Scalar& x) { return x.isFloatingPoint() && std::isnan(x.toDouble()); }
ScalarType type_with(const char* op, const Tensor& self, const Scalar* a, const Scalar* b) {
  native::ResultTypeState state = native::update_result_type_state(self, {});
  if (a != nullptr) state = native::update_result_type_state(*a, state);
  if (b != nullptr) state = native::update_result_type_state(*b, state);
  ScalarType type = native::result_type(state);
  LAMELLA_CHECK(!is_complex(type), op, ": expected real tensors and bounds, got ", type);
  return type;
}
void check_real(const char* op, const Tensor& self) {
  LAMELLA_CHECK(!self.is_complex(), op, ": expected 'self' to be real, got ", self.dtype());
}
// A bound that is NaN makes everything NaN.
void clamp_numbers(TensorIteratorBase& iter, const Scalar* min, const Scalar* max) {
  DeviceType device = iter.device_type();
  for (const Scalar* bound : {min, max}) {
    if (bound != nullptr && is_nan(*bound)) {
      native::pointwise_loop<"replace">(device, iter, bound);
      return;
    }
  }
  if (min != nullptr && max != nullptr) {
    Scalar scalars[] = {*min, *max};
    native::pointwise_loop<"clamp_scalar">(device, iter, scalars);
  } else if (min != nullptr) {
    native::pointwise_loop<"clamp_min_scalar">(device, iter, min);
  } else {
    native::pointwise_loop<"clamp_max_scalar">(device, iter, max);
  }
}

}  // namespace

#define LAMELLA_BUILD_AS(self, type)                    \
  if ((type) == (self).dtype()) {                       \
    build_unary(self, kPromoted);                       \
  } else {                                              \
    const TensorBase* inputs[] = {&(self)};             \
    build_pointwise(inputs, 1, kSelf, kPromoted, type); \
  }

LAMELLA_META_OF(clamp)(const Tensor& self, const Number& min, const Number& max) {
  check_bounds(op_name(), min.has_value() || max.has_value());
  ScalarType type = type_with(op_name(), self, min ? &*min : nullptr, max ? &*max : nullptr);
  LAMELLA_BUILD_AS(self, type)
}
LAMELLA_IMPL_OF(clamp_cpu)(const Tensor&, const Number& min, const Number& max, const Tensor&) {
  clamp_numbers(*this, min ? &*min : nullptr, max ? &*max : nullptr);
}
LAMELLA_META_OF(clamp_min)(const Tensor& self, const Scalar& min) {
  ScalarType type = type_with(op_name(), self, &min, nullptr);
  LAMELLA_BUILD_AS(self, type)
}
LAMELLA_IMPL_OF(clamp_min_cpu)(const Tensor&, const Scalar& min, const Tensor&) {
  clamp_numbers(*this, &min, nullptr);
}
LAMELLA_META_OF(clamp_max)(const Tensor& self, const Scalar& max) {
  ScalarType type = type_with(op_name(), self, &max, nullptr);
  LAMELLA_BUILD_AS(self, type)
}
LAMELLA_IMPL_OF(clamp_max_cpu)(const Tensor&, const Scalar& max, const Tensor&) {
  clamp_numbers(*this, nullptr, &max);
}

LAMELLA_META_OF2(clamp, Tensor)
(const Tensor& self, const MaybeTensor& min, const MaybeTensor& max) {
  check_bounds(op_name(), is_given(min) || is_given(max));
  check_real(op_name(), self);
  if (is_given(min) && is_given(max)) {
    build_ternary(self, *min, *max, kMinMax, kPromoted);
  } else {
    const TensorBase* inputs[] = {&self, is_given(min) ? &*min : &*max};
    build_pointwise(inputs, 2, is_given(min) ? kMin : kMax, kPromoted);
  }
}
LAMELLA_IMPL_OF(clamp_Tensor_cpu)
(const Tensor&, const MaybeTensor& min, const MaybeTensor& max, const Tensor&) {
  if (is_given(min) && is_given(max)) {
    native::pointwise_loop<"clamp">(device_type(), *this, nullptr);
  } else if (is_given(min)) {
    native::pointwise_loop<"maximum">(device_type(), *this, nullptr);
  } else {
    native::pointwise_loop<"minimum">(device_type(), *this, nullptr);
  }
}
LAMELLA_META_OF2(clamp_min, Tensor)(const Tensor& self, const Tensor& min) {
  const TensorBase* inputs[] = {&self, &min};
  build_pointwise(inputs, 2, kMin, kPromoted);
}
LAMELLA_IMPL_OF(clamp_min_Tensor_cpu)(const Tensor&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"maximum">(device_type(), *this, nullptr);
}
LAMELLA_META_OF2(clamp_max, Tensor)(const Tensor& self, const Tensor& max) {
  const TensorBase* inputs[] = {&self, &max};
  build_pointwise(inputs, 2, kMax, kPromoted);
}
LAMELLA_IMPL_OF(clamp_max_Tensor_cpu)(const Tensor&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"minimum">(device_type(), *this, nullptr);
}

LAMELLA_META_OF2(where, self)(const Tensor& condition, const Tensor& self, const Tensor& other) {
  LAMELLA_CHECK(condition.dtype() == kBool || condition.dtype() == kByte, op_name(),
                ": expected 'condition' to have dtype bool, got ", condition.dtype());
  build_where(condition, self, other);
}
LAMELLA_IMPL_OF(where_self_cpu)(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"where">(device_type(), *this, nullptr);
}

namespace {
void check_same(const char* op, const char* name, const Tensor& a, const Tensor& b) {
  LAMELLA_CHECK(a.dtype() == b.dtype(), op, ": expected '", name, "' to have dtype ", a.dtype(),
                ", got ", b.dtype());
}
}  // namespace

LAMELLA_META_OF2(lerp, Scalar)(const Tensor& self, const Tensor& end, const Scalar&) {
  check_same(op_name(), "end", self, end);
  build_binary(self, end, kPromoted);
}
LAMELLA_IMPL_OF(lerp_Scalar_cpu)
(const Tensor&, const Tensor&, const Scalar& weight, const Tensor&) {
  native::pointwise_loop<"lerp_scalar">(device_type(), *this, &weight);
}
LAMELLA_META_OF2(lerp, Tensor)(const Tensor& self, const Tensor& end, const Tensor& weight) {
  static constexpr const char* names[] = {"self", "end", "weight"};
  check_same(op_name(), "end", self, end);
  if (weight.dim() > 0) check_same(op_name(), "weight", self, weight);
  build_ternary(self, end, weight, names, kPromoted);
}
LAMELLA_IMPL_OF(lerp_Tensor_cpu)(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"lerp">(device_type(), *this, nullptr);
}

namespace {
constexpr const char* kTernaryNames[] = {"self", "tensor1", "tensor2"};
}
LAMELLA_META_OF(addcdiv)
(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const Scalar&) {
  LAMELLA_CHECK(!(is_integral(tensor1.dtype(), true) && is_integral(tensor2.dtype(), true)),
                op_name(), ": expected 'tensor1' or 'tensor2' to be floating point, got ",
                tensor1.dtype(), " and ", tensor2.dtype());
  build_ternary(self, tensor1, tensor2, kTernaryNames, kPromoted);
}
LAMELLA_IMPL_OF(addcdiv_cpu)
(const Tensor&, const Tensor&, const Tensor&, const Scalar& value, const Tensor&) {
  native::pointwise_loop<"addcdiv">(device_type(), *this, &value);
}

}  // namespace lamella
