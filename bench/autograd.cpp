// Recording and running backward from C++, in nanoseconds. bench/autograd_torch.cpp has the same
// rows.
#include "lamella/abi/autograd.h"
#include "bench/timing.h"
#include "lamella/lamella.h"

using lamella::Tensor;

namespace {

Tensor leaf() {
  Tensor x = lamella::ones({1});
  lamella::detail::check(lamella_tensor_set_requires_grad(x.impl(), 1));
  return x;
}

void backward(const Tensor& root) {
  lamella_tensor* tensor = root.impl();
  lamella::detail::check(lamella_backward_run(&tensor, nullptr, 1, nullptr, 0, 0, nullptr));
}

// Of one backward through `length` multiplications; building the graph is not counted.
double backward_ns(const Tensor& x, const Tensor& factor, int length) {
  return bench::median_ns_of(
      [&] {
        Tensor y = x;
        for (int i = 0; i < length; ++i) y = lamella::mul(y, factor);
        return y;
      },
      [](const Tensor& y) { backward(y); });
}

}  // namespace

int main() {
  Tensor x = leaf(), factor = lamella::ones({1});
  bench::report("add with gradients, 1 element",
                bench::median_ns([&] { lamella::add(x, factor); }));
  double one = backward_ns(x, factor, 1);
  double many = backward_ns(x, factor, 100);
  double each = (many - one) / 99;
  bench::report("backward, per operator of a chain of 100", each);
  bench::report("backward, fixed cost", one - each);
  return 0;
}
