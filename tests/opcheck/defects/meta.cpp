// Defects: Meta kernels that disagree with the CPU kernel, and a missing one.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor other_shape(const Tensor& x) { return opcheck::fresh_like(x.unsqueeze(0)); }
Tensor other_dtype(const Tensor& x) {
  return lamella::empty(x.sizes(), x.options().dtype(lamella::kDouble));
}
Tensor other_strides(const Tensor& x) { return lamella::empty_like(x); }
Tensor refuses(const Tensor& x) {
  LAMELLA_CHECK(x.dim() == 2, "meta_refuses: expected 'x' to have 2 dimensions, got ", x.dim());
  return opcheck::fresh_like(x);
}

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("has_no_meta(Tensor x) -> Tensor");
  m.def("meta_of_other_shape(Tensor x) -> Tensor");
  m.def("meta_of_other_dtype(Tensor x) -> Tensor");
  m.def("meta_of_other_strides(Tensor x) -> Tensor");
  m.def("meta_refuses(Tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) {
  m.impl("has_no_meta", opcheck::doubled);
  m.impl("meta_of_other_shape", opcheck::doubled);
  m.impl("meta_of_other_dtype", opcheck::doubled);
  m.impl("meta_of_other_strides", opcheck::doubled);
  m.impl("meta_refuses", opcheck::doubled);
}
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("meta_of_other_shape", other_shape);
  m.impl("meta_of_other_dtype", other_dtype);
  m.impl("meta_of_other_strides", other_strides);
  m.impl("meta_refuses", refuses);
}
