// Defects: kernels for layers that differ from the operator.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor total(const Tensor& x) { return opcheck::doubled(x).sum(); }
Tensor meta_of_total(const Tensor& x) { return lamella::empty({}, x.options()); }

// The sum over all examples, for each of them.
Tensor batched_total(const Tensor& x) {
  auto level = lamella::vmap::highest_level(x);
  Tensor values = lamella::vmap::unwrap(x, level).first;
  return lamella::vmap::wrap(total(values).expand({values.size(0)}), level);
}

// Computes on its own, so that nothing is recorded but what came out.
Tensor traced(const Tensor& x) {
  lamella::ExcludeDispatchKeyGuard no_tracing(lamella::DispatchKey::Tracer);
  return opcheck::doubled(x);
}

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("mixes_its_examples(Tensor x) -> Tensor");
  m.def("hides_from_the_tracer(Tensor x) -> Tensor");
  m.def("refuses_its_autocast_class(Tensor x) -> Tensor", "autocast:lower_precision");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) { m.impl("hides_from_the_tracer", opcheck::doubled); }
LAMELLA_LIBRARY_IMPL(defects, Meta, m) { m.impl("hides_from_the_tracer", opcheck::fresh_like); }
LAMELLA_LIBRARY_IMPL(defects, Tracer, m) { m.impl("hides_from_the_tracer", traced); }
LAMELLA_LIBRARY_IMPL(defects, CPU, m) { m.impl("mixes_its_examples", total); }
LAMELLA_LIBRARY_IMPL(defects, Meta, m) { m.impl("mixes_its_examples", meta_of_total); }
LAMELLA_LIBRARY_IMPL(defects, Batched, m) { m.impl("mixes_its_examples", batched_total); }
LAMELLA_LIBRARY_IMPL(defects, CPU, m) { m.impl("refuses_its_autocast_class", opcheck::doubled); }
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("refuses_its_autocast_class", opcheck::fresh_like);
}
