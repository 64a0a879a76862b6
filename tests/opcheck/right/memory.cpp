// Correct: memory that is in bounds, initialized, and freed.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

// Each element's successor, the last one itself.
Tensor reads_up_to_the_end(const Tensor& x) {
  LAMELLA_CHECK_TYPE(x.scalar_type() == lamella::kFloat,
                     "reads_up_to_the_end: expected 'x' to be float32, got ", x.scalar_type());
  Tensor from = x.contiguous();
  Tensor result = opcheck::fresh_like(from);
  const float* source = from.const_data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  int64_t count = from.numel();
  for (int64_t i = 0; i < count; ++i) to[i] = source[i + 1 < count ? i + 1 : i];
  return result;
}
Tensor divides_by_its_size(const Tensor& x) {
  int64_t count = x.numel();
  if (count == 0) return opcheck::fresh_like(x);
  return opcheck::map(x, [count](double value) { return value / static_cast<double>(count); });
}
// Kept for the next call, but only once.
Tensor keeps_one_buffer(const Tensor& x) {
  static const Tensor* buffer = new Tensor(lamella::zeros({4}));
  double zero = buffer->const_data_ptr<float>()[0];
  return opcheck::map(x, [zero](double value) { return value + zero; });
}
Tensor fails_cleanly(const Tensor& x) {
  Tensor result = opcheck::fresh_like(x);
  LAMELLA_CHECK_TYPE(x.scalar_type() == lamella::kFloat || x.scalar_type() == lamella::kDouble,
                     "fails_cleanly: expected 'x' to be floating-point, got ", x.scalar_type());
  opcheck::map_into(x.contiguous(), result, x.numel(), [](double value) { return value; });
  return result;
}
// An element for each of x and one more.
Tensor grows(const Tensor& x) {
  Tensor flat = x.reshape({-1});
  return lamella::cat({flat, lamella::ones({1}, x.options())});
}

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("reads_up_to_the_end(Tensor x) -> Tensor");
  m.def("writes_up_to_the_end(Tensor x) -> Tensor");
  m.def("divides_by_its_size(Tensor x) -> Tensor");
  m.def("keeps_one_buffer(Tensor x) -> Tensor");
  m.def("fails_cleanly(Tensor x) -> Tensor");
  m.def("grows(Tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("reads_up_to_the_end", reads_up_to_the_end);
  m.impl("writes_up_to_the_end", opcheck::doubled);
  m.impl("divides_by_its_size", divides_by_its_size);
  m.impl("keeps_one_buffer", keeps_one_buffer);
  m.impl("fails_cleanly", fails_cleanly);
  m.impl("grows", grows);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("reads_up_to_the_end", opcheck::fresh_like);
  m.impl("writes_up_to_the_end", opcheck::fresh_like);
  m.impl("divides_by_its_size", opcheck::fresh_like);
  m.impl("keeps_one_buffer", opcheck::fresh_like);
  m.impl("fails_cleanly", opcheck::fresh_like);
  m.impl("grows", grows);
}
