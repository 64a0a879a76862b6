// Defects: results that share memory undeclared, or that do not share it as declared.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor returns_its_argument(const Tensor& x) { return x; }
Tensor returns_a_view(const Tensor& x) { return x.unsqueeze(0); }
Tensor meta_of_a_view(const Tensor& x) { return opcheck::fresh_like(x.unsqueeze(0)); }
Tensor copies_its_view(const Tensor& x) { return x.unsqueeze(0).clone(); }
std::tuple<Tensor, Tensor> returns_one_twice(const Tensor& x) {
  Tensor result = opcheck::doubled(x);
  return {result, result};
}
std::tuple<Tensor, Tensor> meta_of_two(const Tensor& x) {
  return {opcheck::fresh_like(x), opcheck::fresh_like(x)};
}
Tensor returns_another_(const Tensor& x) {
  Tensor same = x;
  same.mul_(2);
  return x.clone();
}

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("returns_its_argument(Tensor x) -> Tensor");
  m.def("returns_a_view(Tensor x) -> Tensor");
  m.def("copies_its_view(Tensor(a) x) -> Tensor(a)");
  m.def("returns_one_twice(Tensor x) -> (Tensor, Tensor)");
  m.def("returns_another_(Tensor(a!) x) -> Tensor(a!)");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) {
  m.impl("returns_its_argument", returns_its_argument);
  m.impl("returns_a_view", returns_a_view);
  m.impl("copies_its_view", copies_its_view);
  m.impl("returns_one_twice", returns_one_twice);
  m.impl("returns_another_", returns_another_);
}
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("returns_its_argument", opcheck::fresh_like);
  m.impl("returns_a_view", meta_of_a_view);
  m.impl("copies_its_view", copies_its_view);
  m.impl("returns_one_twice", meta_of_two);
  m.impl("returns_another_", returns_another_);
}
