// Correct: results that depend on the arguments alone, or on the generator, which is allowed.
#include <atomic>
#include <vector>

#include "tests/opcheck/kernels.h"

namespace {

using opcheck::Tensor;

// Counts without an effect on the result.
Tensor counts_in_silence(const Tensor& x) {
  static std::atomic<int> calls = 0;
  ++calls;
  return opcheck::doubled(x);
}
Tensor turns_gradients_off_and_on(const Tensor& x) {
  lamella::NoGradGuard off;
  return opcheck::doubled(x);
}
Tensor has_its_own_scratch(const Tensor& x) {
  std::vector<double> scratch;
  scratch.reserve(static_cast<size_t>(x.numel()));
  opcheck::map(x, [&scratch](double value) {
    scratch.push_back(2 * value);
    return value;
  });
  size_t place = 0;
  return opcheck::map(x, [&](double) { return scratch[place++]; });
}
Tensor adds_noise(const Tensor& x) { return x.contiguous() + lamella::rand_like(x.contiguous()); }

}  // namespace

LAMELLA_LIBRARY_FRAGMENT(right, m) {
  m.def("counts_in_silence(Tensor x) -> Tensor");
  m.def("turns_gradients_off_and_on(Tensor x) -> Tensor");
  m.def("has_its_own_scratch(Tensor x) -> Tensor");
  m.def("adds_noise(Tensor x) -> Tensor", "nondeterministic_seeded");
}
LAMELLA_LIBRARY_IMPL(right, CPU, m) {
  m.impl("counts_in_silence", counts_in_silence);
  m.impl("turns_gradients_off_and_on", turns_gradients_off_and_on);
  m.impl("has_its_own_scratch", has_its_own_scratch);
  m.impl("adds_noise", adds_noise);
}
LAMELLA_LIBRARY_IMPL(right, Meta, m) {
  m.impl("counts_in_silence", opcheck::fresh_like);
  m.impl("turns_gradients_off_and_on", opcheck::fresh_like);
  m.impl("has_its_own_scratch", opcheck::fresh_like);
  m.impl("adds_noise", adds_noise);
}
