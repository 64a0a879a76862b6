// Correct: results share memory with the arguments that the schema names, and with no others.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor copies_its_argument(const Tensor& x) { return x.clone(); }
Tensor returns_a_view(const Tensor& x) { return x.unsqueeze(0); }
// Itself where it can be; only a composite kernel may do so.
Tensor may_return_its_argument(const Tensor& x) { return x.contiguous(); }
std::tuple<Tensor, Tensor> returns_two(const Tensor& x) {
  return {opcheck::doubled(x), opcheck::map(x, [](double value) { return 3 * value; })};
}
std::tuple<Tensor, Tensor> meta_of_two(const Tensor& x) {
  return {opcheck::fresh_like(x), opcheck::fresh_like(x)};
}
Tensor& returns_itself_(Tensor& x) { return x.mul_(2); }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("copies_its_argument(Tensor x) -> Tensor");
  m.def("returns_a_view(Tensor(a) x) -> Tensor(a)");
  m.def("may_return_its_argument(Tensor(a) x) -> Tensor(a)");
  m.def("returns_two(Tensor x) -> (Tensor, Tensor)");
  m.def("returns_itself_(Tensor(a!) x) -> Tensor(a!)");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("copies_its_argument", copies_its_argument);
  m.impl("returns_a_view", returns_a_view);
  m.impl("returns_two", returns_two);
  m.impl("returns_itself_", returns_itself_);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("copies_its_argument", copies_its_argument);
  m.impl("returns_a_view", returns_a_view);
  m.impl("returns_two", meta_of_two);
  m.impl("returns_itself_", returns_itself_);
}
LAMELLA_LIBRARY_IMPL(right, CompositeImplicitAutograd, m) {
  m.impl("may_return_its_argument", may_return_its_argument);
}
