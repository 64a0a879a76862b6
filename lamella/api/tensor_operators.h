// C++ operators on tensors. They are templates over Tensor, so that each is compiled, with the
// tensor operator that it calls, only where it is used.
#pragma once
#include "lamella/api/tensor.h"

namespace lamella {

namespace detail {
template <class T>
concept TensorOperand = __is_base_of(Tensor, T);
template <class T>
concept NumberOperand = Number<T> || __is_same(T, Scalar);
}  // namespace detail

// a OP b, a OP 2, 2 OP a. REVERSED is the last one, with `a` the number and `b` the tensor.
#define LAMELLA_TENSOR_OPERATOR(OP, METHOD, REVERSED)         \
  template <detail::TensorOperand A, detail::TensorOperand B> \
  Tensor operator OP(const A& a, const B& b) {                \
    return a.METHOD(b);                                       \
  }                                                           \
  template <detail::TensorOperand A, detail::NumberOperand B> \
  Tensor operator OP(const A& a, const B& b) {                \
    return a.METHOD(Scalar(b));                               \
  }                                                           \
  template <detail::NumberOperand A, detail::TensorOperand B> \
  Tensor operator OP(const A& a, const B& b) {                \
    return REVERSED;                                          \
  }
LAMELLA_TENSOR_OPERATOR(+, add, b.add(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(-, sub, rsub(b, Scalar(a)))
LAMELLA_TENSOR_OPERATOR(*, mul, b.mul(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(/, div, b.reciprocal().mul(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(%, remainder, remainder(Scalar(a), b))
LAMELLA_TENSOR_OPERATOR(&, bitwise_and, b.bitwise_and(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(|, bitwise_or, b.bitwise_or(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(^, bitwise_xor, b.bitwise_xor(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(==, eq, b.eq(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(!=, ne, b.ne(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(<, lt, b.gt(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(<=, le, b.ge(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(>, gt, b.lt(Scalar(a)))
LAMELLA_TENSOR_OPERATOR(>=, ge, b.le(Scalar(a)))
#undef LAMELLA_TENSOR_OPERATOR

}  // namespace lamella
