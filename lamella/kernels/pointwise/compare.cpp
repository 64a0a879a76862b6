// Comparison, logic and bits of two tensors, or of a tensor and a number.
#include "lamella/kernels/pointwise/pointwise.h"

namespace lamella {
namespace {
constexpr uint32_t kPlain = TensorIteratorBase::kPointwise;
constexpr uint32_t kTruth = TensorIteratorBase::kComparison;
}  // namespace

#define LAMELLA_COMPARISON(op)                 \
  LAMELLA_BINARY_TENSOR(op, kTruth, op##_stub) \
  LAMELLA_BINARY_SCALAR(op, Scalar, kTruth, op##_stub)
LAMELLA_COMPARISON(eq)
LAMELLA_COMPARISON(ne)
LAMELLA_COMPARISON(lt)
LAMELLA_COMPARISON(le)
LAMELLA_COMPARISON(gt)
LAMELLA_COMPARISON(ge)

LAMELLA_BINARY(logical_and, kTruth, logical_and_stub)
LAMELLA_BINARY(logical_or, kTruth, logical_or_stub)
LAMELLA_BINARY(logical_xor, kTruth, logical_xor_stub)
LAMELLA_UNARY(logical_not, kTruth)

#define LAMELLA_BITWISE(op)                            \
  LAMELLA_BINARY_TENSOR(op, kPlain, op##_stub)         \
  LAMELLA_BINARY_SCALAR(op, Scalar, kPlain, op##_stub) \
  LAMELLA_BINARY_NUMBER(op, Scalar_Tensor, kPlain, op##_stub)
LAMELLA_BITWISE(bitwise_and)
LAMELLA_BITWISE(bitwise_or)
LAMELLA_BITWISE(bitwise_xor)
LAMELLA_UNARY(bitwise_not, kPlain)
LAMELLA_BINARY_TENSOR(bitwise_left_shift, kPlain, bitwise_left_shift_stub)
LAMELLA_BINARY_SCALAR(bitwise_left_shift, Tensor_Scalar, kPlain, bitwise_left_shift_stub)
LAMELLA_BINARY_TENSOR(bitwise_right_shift, kPlain, bitwise_right_shift_stub)
LAMELLA_BINARY_SCALAR(bitwise_right_shift, Tensor_Scalar, kPlain, bitwise_right_shift_stub)

LAMELLA_UNARY(signbit, kTruth)
LAMELLA_UNARY(isnan, kTruth)
LAMELLA_UNARY(isinf, kTruth)
LAMELLA_UNARY(isfinite, kTruth)
LAMELLA_UNARY(isposinf, kTruth)
LAMELLA_UNARY(isneginf, kTruth)

}  // namespace lamella
