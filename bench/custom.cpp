// Operators from another library, for the Python rows: one that does nothing, one that adds.
#include "lamella/lamella.h"

namespace {

using lamella::Tensor;

Tensor noop(const Tensor& self) { return self; }
// The same work as the built-in add, from outside.
Tensor add(const Tensor& self, const Tensor& other) { return lamella::add(self, other); }

LAMELLA_LIBRARY(bench_custom, m) {
  m.def("noop(Tensor self) -> Tensor");
  m.def("add(Tensor self, Tensor other) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(bench_custom, CPU, m) {
  m.impl("noop", LAMELLA_FN(noop));
  m.impl("add", LAMELLA_FN(add));
}

}  // namespace
