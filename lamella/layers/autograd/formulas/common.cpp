#include "lamella/layers/autograd/formulas/common.h"

namespace lamella {

Tensor real_of(const Tensor& x) { return x.is_complex() ? lamella::real(x) : x; }
Tensor keep(const Tensor& x, const Tensor& condition) {
  return lamella::where(condition, x, Scalar(0));
}

}  // namespace lamella
