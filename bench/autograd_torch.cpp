// The rows of autograd.cpp with libtorch.
#include <ATen/ATen.h>

#include "bench/timing.h"

namespace {

double backward_ns(const at::Tensor& x, const at::Tensor& factor, int length) {
  return bench::median_ns_of(
      [&] {
        at::Tensor y = x;
        for (int i = 0; i < length; ++i) y = at::mul(y, factor);
        return y;
      },
      [](const at::Tensor& y) { y.backward(); });
}

}  // namespace

int main() {
  at::Tensor x = at::ones({1}), factor = at::ones({1});
  x.requires_grad_();
  bench::report("add with gradients, 1 element", bench::median_ns([&] { at::add(x, factor); }));
  double one = backward_ns(x, factor, 1);
  double many = backward_ns(x, factor, 100);
  double each = (many - one) / 99;
  bench::report("backward, per operator of a chain of 100", each);
  bench::report("backward, fixed cost", one - each);
  return 0;
}
