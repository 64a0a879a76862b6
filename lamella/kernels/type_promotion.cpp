// Type promotion among tensors and numbers.
#include "lamella/kernels/type_promotion.h"

namespace lamella {
namespace native {
namespace {

ScalarType promote_known(ScalarType a, ScalarType b) {
  if (a == ScalarType::Undefined) return b;
  if (b == ScalarType::Undefined) return a;
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
