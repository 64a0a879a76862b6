// Correct: declared writes, counted in the version.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor writes_nothing(const Tensor& x) { return opcheck::doubled(x); }
Tensor writes_its_argument(const Tensor& x, Tensor& total) {
  LAMELLA_CHECK(total.sizes() == x.sizes(),
                "writes_its_argument: expected 'total' to have the shape ", x.sizes(), ", got ",
                total.sizes());
  LAMELLA_CHECK(total.scalar_type() == x.scalar_type(),
                "writes_its_argument: expected 'total' to have dtype ", x.scalar_type(), ", got ",
                total.scalar_type());
  Tensor result = opcheck::doubled(x);
  total.copy_(result);
  return result;
}
Tensor meta_of_writes(const Tensor& x, Tensor&) { return opcheck::fresh_like(x); }

Tensor& negates_(Tensor& x) {
  x.copy_(opcheck::map(x, [](double value) { return -value; }));
  return x;
}
Tensor& writes_in_place_(Tensor& x) {
  Tensor twice = opcheck::doubled(x);
  if (!x.is_contiguous()) return x.copy_(twice);
  opcheck::map_into(twice, x, x.numel(), [](double value) { return value; });
  return x;
}
Tensor& meta_(Tensor& x) { return x; }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("writes_nothing(Tensor x) -> Tensor");
  m.def("writes_its_argument(Tensor x, Tensor(a!) total) -> Tensor");
  m.def("negates_(Tensor(a!) x) -> Tensor(a!)");
  m.def("writes_in_place_(Tensor(a!) x) -> Tensor(a!)");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("writes_nothing", writes_nothing);
  m.impl("writes_its_argument", writes_its_argument);
  m.impl("negates_", negates_);
  m.impl("writes_in_place_", writes_in_place_);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("writes_nothing", opcheck::fresh_like);
  m.impl("writes_its_argument", meta_of_writes);
  m.impl("negates_", meta_);
  m.impl("writes_in_place_", meta_);
}
