// Defects: undeclared writes, and declared writes that do not happen.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor writes_its_argument(const Tensor& x) {
  Tensor result = opcheck::doubled(x);
  lamella::AutoDispatchBelowADInplaceOrView below;
  Tensor same = x;
  same.mul_(2);
  return result;
}
Tensor reshapes_its_argument(const Tensor& x) {
  Tensor same = x;
  same.unsqueeze_(0);
  return opcheck::doubled(x).squeeze(0).clone();
}
Tensor meta(const Tensor& x) { return opcheck::fresh_like(x); }

Tensor& never_writes_(Tensor& x) { return x; }
Tensor& hides_its_write_(Tensor& x) {
  Tensor twice = opcheck::doubled(x);
  if (x.is_contiguous()) {
    opcheck::map_into(twice, x, x.numel(), [](double value) { return value; });
  } else {
    x.copy_(twice);
  }
  return x;
}
Tensor& meta_(Tensor& x) { return x; }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("writes_its_argument(Tensor x) -> Tensor");
  m.def("reshapes_its_argument(Tensor x) -> Tensor");
  m.def("never_writes_(Tensor(a!) x) -> Tensor(a!)");
  m.def("hides_its_write_(Tensor(a!) x) -> Tensor(a!)");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) {
  m.impl("writes_its_argument", writes_its_argument);
  m.impl("reshapes_its_argument", reshapes_its_argument);
  m.impl("never_writes_", never_writes_);
  m.impl("hides_its_write_", hides_its_write_);
}
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("writes_its_argument", meta);
  m.impl("reshapes_its_argument", meta);
  m.impl("never_writes_", meta_);
  m.impl("hides_its_write_", meta_);
}
// Lamella would count its write here.
LAMELLA_LIBRARY_IMPL(defects, ADInplaceOrView, m) {
  m.impl("hides_its_write_", lamella::CppFunction::makeFallthrough());
}
