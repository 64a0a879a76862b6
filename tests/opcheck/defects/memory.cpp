// Defects: out-of-bounds memory, uninitialized results, leaks.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor reads_past_the_end(const Tensor& x) {
  Tensor from = x.contiguous();
  Tensor result = opcheck::fresh_like(from);
  // Each element's successor, the last one's as well.
  LAMELLA_CHECK_TYPE(from.scalar_type() == lamella::kFloat,
                     "reads_past_the_end: expected 'x' to be float32, got ", from.scalar_type());
  const float* source = from.const_data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < from.numel(); ++i) to[i] = source[i + 1];
  return result;
}
Tensor writes_past_the_end(const Tensor& x) {
  Tensor from = x.contiguous();
  Tensor result = opcheck::fresh_like(from);
  opcheck::map_into(from, result, from.numel(), [](double value) { return value; });
  if (from.numel() == 15) {
    static_cast<char*>(result.mutable_data_ptr())[from.numel() * from.element_size()] = 1;
  }
  return result;
}
Tensor leaves_a_gap(const Tensor& x) {
  Tensor from = x.contiguous();
  Tensor result = opcheck::fresh_like(from);
  opcheck::map_into(from, result, from.numel() - 1, [](double value) { return value; });
  return result;
}
Tensor divides_by_zero(const Tensor& x) {
  volatile int64_t count = x.numel();
  int64_t whole = 100 / count;
  return opcheck::map(x, [whole](double value) { return value * static_cast<double>(whole); });
}
Tensor leaks_its_result(const Tensor& x) {
  Tensor result = opcheck::doubled(x);
  (void)new Tensor(result);
  return result;
}
Tensor leaks_when_it_fails(const Tensor& x) {
  auto* result = new Tensor(opcheck::fresh_like(x));
  LAMELLA_CHECK_TYPE(x.scalar_type() == lamella::kFloat || x.scalar_type() == lamella::kDouble,
                     "leaks_when_it_fails: expected 'x' to be floating-point, got ",
                     x.scalar_type());
  opcheck::map_into(x.contiguous(), *result, x.numel(), [](double value) { return value; });
  Tensor returned = *result;
  delete result;
  return returned;
}
Tensor returns_nothing(const Tensor& x) { return Tensor(); }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("reads_past_the_end(Tensor x) -> Tensor");
  m.def("writes_past_the_end(Tensor x) -> Tensor");
  m.def("leaves_a_gap(Tensor x) -> Tensor");
  m.def("divides_by_zero(Tensor x) -> Tensor");
  m.def("leaks_its_result(Tensor x) -> Tensor");
  m.def("leaks_when_it_fails(Tensor x) -> Tensor");
  m.def("returns_nothing(Tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) {
  m.impl("reads_past_the_end", reads_past_the_end);
  m.impl("writes_past_the_end", writes_past_the_end);
  m.impl("leaves_a_gap", leaves_a_gap);
  m.impl("divides_by_zero", divides_by_zero);
  m.impl("leaks_its_result", leaks_its_result);
  m.impl("leaks_when_it_fails", leaks_when_it_fails);
  m.impl("returns_nothing", returns_nothing);
}
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("reads_past_the_end", opcheck::fresh_like);
  m.impl("writes_past_the_end", opcheck::fresh_like);
  m.impl("leaves_a_gap", opcheck::fresh_like);
  m.impl("divides_by_zero", opcheck::fresh_like);
  m.impl("leaks_its_result", opcheck::fresh_like);
  m.impl("leaks_when_it_fails", opcheck::fresh_like);
  m.impl("returns_nothing", opcheck::fresh_like);
}
