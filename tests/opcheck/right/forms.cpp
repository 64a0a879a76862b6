// Correct: equal results for all layouts, forms, defaults and optional arguments.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor insists_on_contiguous(const Tensor& x) {
  LAMELLA_CHECK(x.is_contiguous(), "insists_on_contiguous: expected 'x' to be contiguous");
  Tensor result = opcheck::fresh_like(x);
  opcheck::map_into(x, result, x.numel(), [](double value) { return 2 * value; });
  return result;
}
Tensor scaled(const Tensor& x, double factor, int64_t times) {
  LAMELLA_CHECK(times >= 0, "scaled: expected 'times' to be at least 0, got ", times);
  return opcheck::map(x, [=](double value) {
    for (int64_t i = 0; i < times; ++i) value *= factor;
    return value;
  });
}
Tensor meta_of_scaled(const Tensor& x, double, int64_t) { return opcheck::fresh_like(x); }

Tensor shifted(const Tensor& x, const std::optional<Tensor>& by) {
  if (!by.has_value()) return opcheck::doubled(x);
  return x.contiguous() + by->contiguous();
}
Tensor meta_of_shifted(const Tensor& x, const std::optional<Tensor>& by) {
  return by.has_value() ? x.contiguous() + by->contiguous() : opcheck::fresh_like(x);
}
Tensor sum_of(lamella::TensorList parts) {
  LAMELLA_CHECK(!parts.empty(), "sum_of: expected 'parts' not to be empty");
  Tensor sum = parts[0].contiguous().clone();
  for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i].contiguous();
  return sum;
}

Tensor& twice_out(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  return out.copy_(opcheck::doubled(x));
}
Tensor& twice_(Tensor& x) { return x.copy_(opcheck::doubled(x)); }
Tensor& meta_of_out(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  return out;
}
Tensor& meta_of_inplace_(Tensor& x) { return x; }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("insists_on_contiguous(Tensor x) -> Tensor");
  m.def("scaled(Tensor x, float factor=0.5, *, int times=2) -> Tensor");
  m.def("shifted(Tensor x, Tensor? by=None) -> Tensor");
  m.def("sum_of(Tensor[] parts) -> Tensor");
  m.def("twice(Tensor x) -> Tensor");
  m.def("twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  m.def("twice_(Tensor(a!) x) -> Tensor(a!)");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("insists_on_contiguous", insists_on_contiguous);
  m.impl("scaled", scaled);
  m.impl("shifted", shifted);
  m.impl("sum_of", sum_of);
  m.impl("twice", opcheck::doubled);
  m.impl("twice.out", twice_out);
  m.impl("twice_", twice_);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("insists_on_contiguous", opcheck::fresh_like);
  m.impl("scaled", meta_of_scaled);
  m.impl("shifted", meta_of_shifted);
  m.impl("sum_of", sum_of);
  m.impl("twice", opcheck::fresh_like);
  m.impl("twice.out", meta_of_out);
  m.impl("twice_", meta_of_inplace_);
}
