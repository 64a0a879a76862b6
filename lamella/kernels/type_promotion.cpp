// Type promotion among tensors and numbers.
#include "lamella/kernels/type_promotion.h"

#include <algorithm>

namespace lamella {
namespace native {
namespace {

// The smallest integer type that holds both, one of which is uint16, uint32 or uint64. PyTorch has
// no rule for these; this is the array API standard's, which has none for int64 with uint64.
ScalarType promote_unsigned(ScalarType a, ScalarType b) {
  bool a_signed = is_signed_type(a), b_signed = is_signed_type(b);
  size_t a_bytes = element_size(a), b_bytes = element_size(b);
  if (a_signed == b_signed) return a_bytes >= b_bytes ? a : b;
  ScalarType with_sign = a_signed ? a : b;
  size_t wanted = std::max(element_size(with_sign), 2 * element_size(a_signed ? b : a));
  if (wanted > 8) return promote_types(a, b);
  return wanted == 8 ? kLong : wanted == 4 ? kInt : kShort;
}

ScalarType promote_known(ScalarType a, ScalarType b) {
  if (a == ScalarType::Undefined) return b;
  if (b == ScalarType::Undefined) return a;
  if (is_integral(a, false) && is_integral(b, false) && a != b &&
      (is_barebones_unsigned(a) || is_barebones_unsigned(b))) {
    return promote_unsigned(a, b);
  }
  return promote_types(a, b);
}
// `lower` counts only where its category is higher than that of `higher`.
ScalarType combine(ScalarType higher, ScalarType lower) {
  if (is_complex(higher)) return higher;
  if (is_floating_point(higher)) return is_complex(lower) ? to_complex_type(higher) : higher;
  if (higher == ScalarType::Bool || is_floating_point(lower) || is_complex(lower)) {
    return promote_known(higher, lower);
  }
  return higher != ScalarType::Undefined ? higher : lower;
}
ScalarType number_type(ScalarType type) {
  if (is_complex(type)) return to_complex_type(get_default_dtype());
  return is_floating_point(type) ? get_default_dtype() : type;
}

}  // namespace

ResultTypeState update_result_type_state(const TensorBase& tensor, const ResultTypeState& state) {
  if (!tensor.defined()) return state;
  ResultTypeState next = state;
  ScalarType type = tensor.dtype();
  if (tensor.dim() > 0) {
    next.dim_result = promote_known(state.dim_result, type);
  } else if (tensor.is_wrapped_number()) {
    next.wrapped_result = promote_known(state.wrapped_result, number_type(type));
  } else {
    next.zero_result = promote_known(state.zero_result, type);
  }
  return next;
}

ResultTypeState update_result_type_state(const Scalar& scalar, const ResultTypeState& state) {
  ResultTypeState next = state;
  next.wrapped_result = promote_known(state.wrapped_result, number_type(scalar.type()));
  return next;
}

ScalarType result_type(const ResultTypeState& state) {
  return combine(state.dim_result, combine(state.zero_result, state.wrapped_result));
}

ScalarType result_type(const TensorBase& a, const TensorBase& b) {
  return result_type(update_result_type_state(b, update_result_type_state(a, {})));
}
ScalarType result_type(const TensorBase& tensor, const Scalar& number) {
  return result_type(update_result_type_state(number, update_result_type_state(tensor, {})));
}
ScalarType result_type(const Scalar& a, const Scalar& b) {
  return result_type(update_result_type_state(b, update_result_type_state(a, {})));
}

}  // namespace native
}  // namespace lamella
