// Arithmetic of two tensors, or of a tensor and a number.
#include <cmath>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/pointwise.h"
#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {

LAMELLA_ALWAYS_INLINE bool is_one(const Scalar& alpha) {
  const lamella_scalar& v = alpha.abi();
  return (v.tag == LAMELLA_INT && v.as.i == 1) || (v.tag == LAMELLA_DOUBLE && v.as.d == 1);
}
// alpha is of the result's kind, or below.
void check_alpha(const char* op, ScalarType type, const Scalar& alpha) {
  LAMELLA_CHECK(!alpha.isBoolean() || type == kBool, op,
                ": expected 'alpha' to be a number for a result of ", type, ", got a bool");
  LAMELLA_CHECK(is_floating_point(type) || is_complex(type) || alpha.isIntegral(true), op,
                ": expected 'alpha' to be an integer for a result of ", type, ", got ", alpha);
  LAMELLA_CHECK(is_complex(type) || !alpha.isComplex(), op,
                ": expected 'alpha' to be real for a result of ", type, ", got ", alpha);
}
void check_sub(const char* op, ScalarType a, ScalarType b) {
  LAMELLA_CHECK(a != kBool || b != kBool, op,
                ": expected numbers, got two operands of bool; use logical_xor or ^");
  LAMELLA_CHECK(a != kBool && b != kBool, op,
                ": expected numbers, got an operand of bool; use logical_not or ~ to invert one");
}
Scalar minus_of(const Scalar& alpha) {
  return alpha.isBoolean() ? Scalar(-alpha.toLong()) : -alpha;
}

constexpr uint32_t kPromoted = TensorIteratorBase::kPointwise;
constexpr uint32_t kFloating = TensorIteratorBase::kPointwiseFloat;

LAMELLA_ALWAYS_INLINE void add_scaled(TensorIteratorBase& iter, DeviceType device,
                                      const Scalar& alpha) {
  if (LAMELLA_LIKELY(is_one(alpha))) return native::pointwise_loop<"add">(device, iter, nullptr);
  native::pointwise_loop<"add_alpha">(device, iter, &alpha);
}
LAMELLA_ALWAYS_INLINE void subtract_scaled(TensorIteratorBase& iter, DeviceType device,
                                           const Scalar& alpha) {
  if (LAMELLA_LIKELY(is_one(alpha))) return native::pointwise_loop<"sub">(device, iter, nullptr);
  Scalar minus = minus_of(alpha);
  native::pointwise_loop<"add_alpha">(device, iter, &minus);
}

}  // namespace

// ---- add, sub ----

LAMELLA_META_OF2(add, Tensor)(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  build_binary(self, other, kPromoted);
  if (LAMELLA_UNLIKELY(!is_one(alpha))) check_alpha(op_name(), common_dtype(), alpha);
}
LAMELLA_IMPL_OF(add_Tensor_cpu)(const Tensor&, const Tensor&, const Scalar& alpha, const Tensor&) {
  add_scaled(*this, device_type(), alpha);
}
LAMELLA_META_OF2(add, Scalar)(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  build_with_number(self, other, kPromoted);
  if (LAMELLA_UNLIKELY(!is_one(alpha))) check_alpha(op_name(), common_dtype(), alpha);
}
LAMELLA_IMPL_OF(add_Scalar_cpu)(const Tensor&, const Scalar&, const Scalar& alpha, const Tensor&) {
  add_scaled(*this, device_type(), alpha);
}
LAMELLA_META_OF2(sub, Tensor)(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sub(op_name(), self.dtype(), other.dtype());
  build_binary(self, other, kPromoted);
  if (LAMELLA_UNLIKELY(!is_one(alpha))) check_alpha(op_name(), common_dtype(), alpha);
}
LAMELLA_IMPL_OF(sub_Tensor_cpu)(const Tensor&, const Tensor&, const Scalar& alpha, const Tensor&) {
  subtract_scaled(*this, device_type(), alpha);
}
LAMELLA_META_OF2(sub, Scalar)(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  check_sub(op_name(), self.dtype(), other.type());
  build_with_number(self, other, kPromoted);
  if (LAMELLA_UNLIKELY(!is_one(alpha))) check_alpha(op_name(), common_dtype(), alpha);
}
LAMELLA_IMPL_OF(sub_Scalar_cpu)(const Tensor&, const Scalar&, const Scalar& alpha, const Tensor&) {
  subtract_scaled(*this, device_type(), alpha);
}

// ---- mul, div ----

namespace {
using Mode = std::optional<std::string_view>;
uint32_t division_flags(const char* op, const Mode& mode) {
  if (!mode.has_value()) return kFloating;
  LAMELLA_CHECK(*mode == "trunc" || *mode == "floor", op,
                ": expected 'rounding_mode' to be None, 'trunc' or 'floor', got '", *mode, "'");
  return kPromoted;
}
native::pointwise_fn division(DeviceType device, const Mode& mode) {
  if (!mode.has_value()) return native::pointwise_loop<"div_true">.get(device);
  return *mode == "trunc" ? native::pointwise_loop<"div_trunc">.get(device)
                          : native::pointwise_loop<"div_floor">.get(device);
}
}  // namespace

LAMELLA_META_OF2(div, Tensor_mode)(const Tensor& self, const Tensor& other, Mode mode) {
  build_binary(self, other, division_flags(op_name(), mode));
}
LAMELLA_IMPL_OF(div_Tensor_mode_cpu)(const Tensor&, const Tensor&, Mode mode, const Tensor&) {
  division(device_type(), mode)(*this, nullptr);
}
LAMELLA_META_OF2(div, Scalar_mode)(const Tensor& self, const Scalar& other, Mode mode) {
  build_with_number(self, other, division_flags(op_name(), mode));
}
LAMELLA_IMPL_OF(div_Scalar_mode_cpu)(const Tensor&, const Scalar&, Mode mode, const Tensor&) {
  division(device_type(), mode)(*this, nullptr);
}

// ---- pow ----

namespace {
// Exponents that need no general loop.
enum class Power {
  kGeneral,
  kZero,
  kOne,
  kSquare,
  kCube,
  kRoot,
  kInverseRoot,
  kInverse,
  kInverseSquare
};
Power power_of(ScalarType type, const Scalar& exponent) {
  if (exponent.isComplex()) return Power::kGeneral;
  double e = exponent.toDouble();
  if (e == 0) return Power::kZero;
  if (e == 1) return Power::kOne;
  if (!(is_floating_point(type) || is_complex(type))) return Power::kGeneral;
  if (e == 2) return Power::kSquare;
  if (e == 3) return Power::kCube;
  if (e == 0.5) return Power::kRoot;
  if (is_complex(type)) return Power::kGeneral;
  if (e == -0.5) return Power::kInverseRoot;
  if (e == -1) return Power::kInverse;
  return e == -2 ? Power::kInverseSquare : Power::kGeneral;
}
// Whether a whole exponent is too long for float32's mantissa; rounded, it could be even for odd.
bool needs_double(ScalarType type, const Scalar& exponent) {
  if (type == kDouble || !is_floating_point(type) || exponent.isComplex()) return false;
  const double e = exponent.toDouble();
  return e == std::trunc(e) && std::abs(e) < 0x1p63 && static_cast<float>(e) != e;
}
}  // namespace

LAMELLA_META_OF2(pow, Tensor_Scalar)(const Tensor& self, const Scalar& exponent) {
  LAMELLA_CHECK(
      !(is_integral(self.dtype(), true) && exponent.isIntegral(true) && exponent.toLong() < 0),
      op_name(), ": expected 'exponent' not to be negative for integers, got ", exponent);
  ScalarType type = native::result_type(self, exponent);
  if (is_integral(type, false)) {
    visit_stored(type, op_name(), [&](auto tag) {
      using T = type_of<decltype(tag)>;
      if constexpr (std::is_integral_v<T>) {
        LAMELLA_CHECK(!detail::overflows_real<T>(exponent.toLong()), op_name(),
                      ": expected 'exponent' to fit ", type, ", got ", exponent);
      }
    });
  }
  if (power_of(type, exponent) == Power::kGeneral) {
    build_with_number(self, exponent, kPromoted);
  } else if (type == self.dtype()) {
    build_unary(self, kPromoted);
  } else {
    static constexpr const char* names[] = {"self"};
    const TensorBase* inputs[] = {&self};
    build_pointwise(inputs, 1, names, kPromoted, type);
  }
}
LAMELLA_IMPL_OF(pow_Tensor_Scalar_cpu)
(const Tensor& self, const Scalar& exponent, const Tensor& out) {
  DeviceType device = device_type();
  if (needs_double(common_dtype(), exponent)) {
    out.copy_(lamella::pow(self.to(kDouble), exponent));
    return;
  }
  switch (power_of(common_dtype(), exponent)) {
    case Power::kGeneral:
      return native::pointwise_loop<"pow">(device, *this, nullptr);
    case Power::kZero:
      out.fill_(1);
      return;
    case Power::kOne:
      out.copy_(self);
      return;
    case Power::kSquare:
      return native::pointwise_loop<"pow_square">(device, *this, nullptr);
    case Power::kCube:
      return native::pointwise_loop<"pow_cube">(device, *this, nullptr);
    case Power::kRoot:
      return native::pointwise_loop<"sqrt">(device, *this, nullptr);
    case Power::kInverseRoot:
      return native::pointwise_loop<"rsqrt">(device, *this, nullptr);
    case Power::kInverse:
      return native::pointwise_loop<"reciprocal">(device, *this, nullptr);
    case Power::kInverseSquare:
      return native::pointwise_loop<"pow_inverse_square">(device, *this, nullptr);
  }
}
LAMELLA_META_OF2(pow, Scalar)(const Scalar& self, const Tensor& exponent) {
  build_with_number(exponent, self, kPromoted, true);
}
LAMELLA_IMPL_OF(pow_Scalar_cpu)(const Scalar&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"pow">(device_type(), *this, nullptr);
}

// ---- The rest ----

LAMELLA_META_OF(nextafter)(const Tensor& self, const Tensor& other) {
  build_binary(self, other, kPromoted);
}
LAMELLA_IMPL_OF(nextafter_cpu)(const Tensor&, const Tensor&, const Tensor&) {
  // Small types are computed in float32, where their neighbours are farther away.
  Scalar small = common_dtype() == kHalf ? 1 : common_dtype() == kBFloat16 ? 2 : 0;
  native::pointwise_loop<"nextafter">(device_type(), *this, &small);
}
LAMELLA_META_OF(heaviside)(const Tensor& self, const Tensor& values) {
  LAMELLA_CHECK(self.dtype() == values.dtype(), op_name(), ": expected 'values' to have dtype ",
                self.dtype(), ", got ", values.dtype());
  build_binary(self, values, kPromoted);
}
LAMELLA_IMPL_OF(heaviside_cpu)(const Tensor&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"heaviside">(device_type(), *this, nullptr);
}
LAMELLA_META_OF(polar)(const Tensor& abs, const Tensor& angle) {
  LAMELLA_CHECK(abs.dtype() == kFloat || abs.dtype() == kDouble, op_name(),
                ": expected 'abs' to have dtype float32 or float64, got ", abs.dtype());
  LAMELLA_CHECK(abs.dtype() == angle.dtype(), op_name(), ": expected 'angle' to have dtype ",
                abs.dtype(), ", got ", angle.dtype());
  build_binary(abs, angle, kPromoted | kComplexOutput);
}
LAMELLA_IMPL_OF(polar_cpu)(const Tensor&, const Tensor&, const Tensor&) {
  native::pointwise_loop<"polar">(device_type(), *this, nullptr);
}

}  // namespace lamella
