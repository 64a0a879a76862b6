// Type promotion: the common dtype of operands of several dtypes.
//
// Note [Categories]
//   Tensors with dimensions decide first; tensors without dimensions, and below them numbers of the
//   host language, count only where they are of a higher category: bool < integer < floating point
//   < complex. A number takes part as int64, as the default floating-point type, or as its complex
//   type. Within a category the smallest type that holds both is taken (promote_types).
#pragma once
#include "lamella/core/scalar.h"
#include "lamella/core/tensor_base.h"
#include "lamella/kernels/default_dtype.h"

namespace lamella {

namespace native {

// Operands seen so far, by category of their shape. Undefined: none.
struct ResultTypeState {
  ScalarType dim_result = ScalarType::Undefined;
  ScalarType zero_result = ScalarType::Undefined;
  ScalarType wrapped_result = ScalarType::Undefined;
};
ResultTypeState update_result_type_state(const TensorBase& tensor, const ResultTypeState& state);
ResultTypeState update_result_type_state(const Scalar& scalar, const ResultTypeState& state);
ScalarType result_type(const ResultTypeState& state);

// Throws Error where PyTorch has no rule, for instance uint32 with int64.
ScalarType result_type(const TensorBase& a, const TensorBase& b);
ScalarType result_type(const TensorBase& tensor, const Scalar& number);
ScalarType result_type(const Scalar& a, const Scalar& b);

}  // namespace native
}  // namespace lamella
