// Correct: kernels for layers that agree with the operator.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor total(const Tensor& x) { return opcheck::doubled(x).sum(); }
Tensor meta_of_total(const Tensor& x) { return lamella::empty({}, x.options()); }

Tensor batched_total(const Tensor& x) {
  auto level = lamella::vmap::highest_level(x);
  Tensor values = lamella::vmap::unwrap(x, level).first;
  Tensor sums = opcheck::doubled(values).reshape({values.size(0), -1}).sum({1});
  return lamella::vmap::wrap(sums, level);
}

// Made of operators, which are recorded in its place.
Tensor traced(const Tensor& x) { return x.contiguous() * 2; }

// Of any floating-point dtype.
Tensor doubled_anyhow(const Tensor& x) { return x.contiguous() * 2; }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("keeps_examples_apart(Tensor x) -> Tensor");
  m.def("shows_itself_to_the_tracer(Tensor x) -> Tensor");
  m.def("takes_its_autocast_class(Tensor x) -> Tensor", "autocast:lower_precision");
  m.def("stays_in_float32(Tensor x) -> Tensor", "autocast:float32");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) { m.impl("shows_itself_to_the_tracer", opcheck::doubled); }
LAMELLA_LIBRARY_IMPL(right, Meta, m) { m.impl("shows_itself_to_the_tracer", opcheck::fresh_like); }
LAMELLA_LIBRARY_IMPL(right, Tracer, m) { m.impl("shows_itself_to_the_tracer", traced); }
LAMELLA_LIBRARY_IMPL(right, CPU, m) { m.impl("keeps_examples_apart", total); }
LAMELLA_LIBRARY_IMPL(right, Meta, m) { m.impl("keeps_examples_apart", meta_of_total); }
LAMELLA_LIBRARY_IMPL(right, Batched, m) { m.impl("keeps_examples_apart", batched_total); }
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("takes_its_autocast_class", doubled_anyhow);
  m.impl("stays_in_float32", opcheck::doubled);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("takes_its_autocast_class", doubled_anyhow);
  m.impl("stays_in_float32", opcheck::fresh_like);
}
