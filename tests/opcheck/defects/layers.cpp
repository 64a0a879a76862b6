// Kernels for layers that do something else than the operator.
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

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) { m.def("mixes_its_examples(Tensor x) -> Tensor"); }
LAMELLA_LIBRARY_IMPL(defects, CPU, m) { m.impl("mixes_its_examples", total); }
LAMELLA_LIBRARY_IMPL(defects, Meta, m) { m.impl("mixes_its_examples", meta_of_total); }
LAMELLA_LIBRARY_IMPL(defects, Batched, m) { m.impl("mixes_its_examples", batched_total); }
