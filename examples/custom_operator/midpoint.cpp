// One operator in one file: midpoint(a, b, at) is the point between a and b, a where `at` is 0 and
// b where it is 1.
#include <lamella/lamella.h>

namespace {

lamella::Tensor midpoint(const lamella::Tensor& a, const lamella::Tensor& b, double at) {
  LAMELLA_CHECK(a.sizes() == b.sizes(), "midpoint: expected 'b' to have the shape ", a.sizes(),
                ", got ", b.sizes());
  LAMELLA_CHECK_TYPE(a.scalar_type() == lamella::kFloat && b.scalar_type() == lamella::kFloat,
                     "midpoint: expected 'a' and 'b' to be float32, got ", a.scalar_type(), " and ",
                     b.scalar_type());
  lamella::Tensor from = a.contiguous(), to = b.contiguous();
  lamella::Tensor result = lamella::empty(from.sizes(), from.options());
  const float *x = from.const_data_ptr<float>(), *y = to.const_data_ptr<float>();
  float* out = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) {
    out[i] = x[i] + static_cast<float>(at) * (y[i] - x[i]);
  }
  return result;
}

}  // namespace

// The operator's name and signature, for C++ and Python.
LAMELLA_LIBRARY(custom_operator, m) {
  m.def("midpoint(Tensor a, Tensor b, float at=0.5) -> Tensor");
}
// The kernel for CPU tensors.
LAMELLA_LIBRARY_IMPL(custom_operator, CPU, m) { m.impl("midpoint", midpoint); }
