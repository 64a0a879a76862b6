// Defects: results that depend on more than the arguments.
#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

Tensor counts_its_calls(const Tensor& x) {
  static int calls = 0;
  int count = ++calls;
  return opcheck::map(x, [count](double value) { return value + count; });
}
Tensor hides_its_randomness(const Tensor& x) {
  return x.contiguous() + lamella::rand_like(x.contiguous());
}
Tensor turns_gradients_off(const Tensor& x) {
  lamella::GradMode::set_enabled(false);
  return opcheck::doubled(x);
}
// All threads share one scratch.
Tensor shares_its_scratch(const Tensor& x) {
  constexpr int64_t kMost = int64_t{1} << 18;
  static double scratch[kMost];
  LAMELLA_CHECK(x.numel() <= kMost, "shares_its_scratch: expected 'x' to have at most ", kMost,
                " elements, got ", x.numel());
  int64_t place = 0;
  opcheck::map(x, [&place](double value) {
    scratch[place++] = 2 * value;
    return value;
  });
  place = 0;
  return opcheck::map(x, [&place](double) { return scratch[place++]; });
}

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(defects, m) {
  m.def("counts_its_calls(Tensor x) -> Tensor");
  m.def("hides_its_randomness(Tensor x) -> Tensor");
  m.def("turns_gradients_off(Tensor x) -> Tensor");
  m.def("shares_its_scratch(Tensor x) -> Tensor");
}
LAMELLA_LIBRARY_IMPL(defects, CPU, m) {
  m.impl("counts_its_calls", counts_its_calls);
  m.impl("hides_its_randomness", hides_its_randomness);
  m.impl("turns_gradients_off", turns_gradients_off);
  m.impl("shares_its_scratch", shares_its_scratch);
}
LAMELLA_LIBRARY_IMPL(defects, Meta, m) {
  m.impl("counts_its_calls", opcheck::fresh_like);
  m.impl("hides_its_randomness", hides_its_randomness);
  m.impl("turns_gradients_off", opcheck::fresh_like);
  m.impl("shares_its_scratch", opcheck::fresh_like);
}
