// Helpers that the derivative formulas of all families share.
#include "lamella/layers/autograd/formulas/common.h"

#include "lamella/abi/autograd.h"

namespace lamella {

bool differentiated_again(const Tensor& x) {
  return (lamella_modes() & LAMELLA_MODE_NO_GRAD) == 0 ||
         (x.impl()->flags & LAMELLA_TENSOR_TANGENT) != 0;
}
Tensor real_of(const Tensor& x) { return x.is_complex() ? lamella::real(x) : x; }
Tensor keep(const Tensor& x, const Tensor& condition) {
  return lamella::where(condition, x, Scalar(0));
}

}  // namespace lamella
