// Defects: results that depend on the layout, the form, or on passing a default explicitly.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor assumes_contiguous(const Tensor& x) {
  Tensor result = opcheck::fresh_like(x);
  opcheck::map_into(x, result, x.numel(), [](double value) { return 2 * value; });
  return result;
}
Tensor ignores_the_offset(const Tensor& x) {
  Tensor whole = x.as_strided(x.sizes(), x.strides(), 0);
  return opcheck::doubled(whole);
}
Tensor scaled(const Tensor& x, double factor) {
  LAMELLA_CHECK(factor > 0, "rejects_its_default: expected 'factor' to be positive, got ", factor);
  return opcheck::map(x, [factor](double value) { return factor * value; });
}
Tensor meta_of_scaled(const Tensor& x, double) { return opcheck::fresh_like(x); }

// Three times where the functional form takes twice.
Tensor& other_out(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  out.copy_(opcheck::map(x, [](double value) { return 3 * value; }));
  return out;
}
Tensor& out_ignores_strides(const Tensor& x, Tensor& out) {
  Tensor result = opcheck::doubled(x);
  out.resize_(x.sizes());
  opcheck::map_into(result, out, result.numel(), [](double value) { return value; });
  return out;
}
Tensor& other_inplace_(Tensor& x) {
  x.copy_(opcheck::map(x, [](double value) { return 3 * value; }));
  return x;
}
Tensor& meta_of_out(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  return out;
}
Tensor& meta_of_inplace_(Tensor& x) { return x; }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("assumes_contiguous(Tensor x) -> Tensor");
  m.def("ignores_the_offset(Tensor x) -> Tensor");
  m.def("rejects_its_default(Tensor x, float factor=0) -> Tensor");
  m.def("twice(Tensor x) -> Tensor");
  m.def("twice.other_out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  m.def("twice.ignores_strides_out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  m.def("twice_(Tensor(a!) x) -> Tensor(a!)");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) {
  m.impl("assumes_contiguous", assumes_contiguous);
  m.impl("ignores_the_offset", ignores_the_offset);
  m.impl("rejects_its_default", scaled);
  m.impl("twice", opcheck::doubled);
  m.impl("twice.other_out", other_out);
  m.impl("twice.ignores_strides_out", out_ignores_strides);
  m.impl("twice_", other_inplace_);
}
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("assumes_contiguous", opcheck::fresh_like);
  m.impl("ignores_the_offset", opcheck::fresh_like);
  m.impl("rejects_its_default", meta_of_scaled);
  m.impl("twice", opcheck::fresh_like);
  m.impl("twice.other_out", meta_of_out);
  m.impl("twice.ignores_strides_out", meta_of_out);
  m.impl("twice_", meta_of_inplace_);
}
