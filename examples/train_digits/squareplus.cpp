// Kernels of the operators that operators.yaml declares.
#include <lamella/lamella.h>

#include <cmath>

#include "digits_ops/native_functions.h"

namespace digits::native {
namespace {

using lamella::Tensor;

void check(const char* op, const Tensor& self, double b) {
  LAMELLA_CHECK_TYPE(self.is_floating_point(), op, ": expected 'self' to be floating-point, got ",
                     self.scalar_type());
  LAMELLA_CHECK(b > 0, op, ": expected 'b' to be positive, got ", b);
}

void check_backward(const Tensor& grad_output, const Tensor& self, double b) {
  check("squareplus_backward", self, b);
  LAMELLA_CHECK(grad_output.sizes() == self.sizes(),
                "squareplus_backward: expected 'grad_output' to have the shape ", self.sizes(),
                ", got ", grad_output.sizes());
  LAMELLA_CHECK_TYPE(grad_output.scalar_type() == self.scalar_type(),
                     "squareplus_backward: expected 'grad_output' to have the dtype ",
                     self.scalar_type(), ", got ", grad_output.scalar_type());
}

Tensor make_result(const Tensor& self) { return lamella::empty(self.sizes(), self.options()); }

}  // namespace

Tensor squareplus_cpu(const Tensor& self, double b) {
  check("squareplus", self, b);
  const Tensor x = self.contiguous();
  Tensor result = make_result(x);
  lamella::visit_floating(x.scalar_type(), "squareplus", [&](auto tag) {
    using T = lamella::type_of<decltype(tag)>;
    using C = lamella::compute_type<T>;  // float for float16 and bfloat16
    const T* from = x.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const C v = from[i];
      to[i] = static_cast<T>((v + std::sqrt(v * v + static_cast<C>(b))) / 2);
    }
  });
  return result;
}

Tensor squareplus_backward_cpu(const Tensor& grad_output, const Tensor& self, double b) {
  check_backward(grad_output, self, b);
  const Tensor g = grad_output.contiguous(), x = self.contiguous();
  Tensor result = make_result(x);
  lamella::visit_floating(x.scalar_type(), "squareplus_backward", [&](auto tag) {
    using T = lamella::type_of<decltype(tag)>;
    using C = lamella::compute_type<T>;
    const T* grad = g.const_data_ptr<T>();
    const T* from = x.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const C v = from[i];
      const C slope = (1 + v / std::sqrt(v * v + static_cast<C>(b))) / 2;
      to[i] = static_cast<T>(static_cast<C>(grad[i]) * slope);
    }
  });
  return result;
}

// Kernels for Meta: shapes only, for tracers.
Tensor squareplus_meta(const Tensor& self, double b) {
  check("squareplus", self, b);
  return make_result(self);
}

Tensor squareplus_backward_meta(const Tensor& grad_output, const Tensor& self, double b) {
  check_backward(grad_output, self, b);
  return make_result(self);
}

}  // namespace digits::native
