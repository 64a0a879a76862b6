// Correct: Meta kernels that agree with the CPU kernel.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor batched(const Tensor& x) { return opcheck::doubled(x).unsqueeze(0).clone(); }
Tensor meta_of_batched(const Tensor& x) {
  return opcheck::fresh_like(opcheck::fresh_like(x).unsqueeze(0));
}
Tensor widened(const Tensor& x) { return opcheck::doubled(x).to(lamella::kDouble).clone(); }
Tensor meta_of_widened(const Tensor& x) {
  return lamella::empty(x.sizes(), x.options().dtype(lamella::kDouble));
}
// The strides of x, as far as they are dense.
Tensor keeps_strides(const Tensor& x) { return x * 2; }
Tensor two_dimensional(const Tensor& x) {
  LAMELLA_CHECK(x.dim() == 2, "two_dimensional: expected 'x' to have 2 dimensions, got ", x.dim());
  return opcheck::doubled(x);
}
Tensor meta_of_two_dimensional(const Tensor& x) {
  LAMELLA_CHECK(x.dim() == 2, "two_dimensional: expected 'x' to have 2 dimensions, got ", x.dim());
  return opcheck::fresh_like(x);
}

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("has_a_meta(Tensor x) -> Tensor");
  m.def("batched(Tensor x) -> Tensor");
  m.def("widened(Tensor x) -> Tensor");
  m.def("keeps_strides(Tensor x) -> Tensor");
  m.def("two_dimensional(Tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("has_a_meta", opcheck::doubled);
  m.impl("batched", batched);
  m.impl("widened", widened);
  m.impl("keeps_strides", keeps_strides);
  m.impl("two_dimensional", two_dimensional);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("has_a_meta", opcheck::fresh_like);
  m.impl("batched", meta_of_batched);
  m.impl("widened", meta_of_widened);
  m.impl("keeps_strides", keeps_strides);
  m.impl("two_dimensional", meta_of_two_dimensional);
}
