// Small operators from C++: nanoseconds of one call. Built twice: against liblamella.so, as users
// build, and with the library's objects linked in.
#include "bench/timing.h"
#include "lamella/lamella.h"

using bench::median_ns;
using bench::report;

int main() {
  using lamella::Tensor;
  Tensor a = lamella::ones({1}), b = lamella::ones({1}), out = lamella::empty({1});
  Tensor a64 = lamella::ones({64}), b64 = lamella::ones({64});
  Tensor matrix = lamella::ones({4, 4}), square = lamella::ones({4, 4});
  report("add, 1 element", median_ns([&] { lamella::add(a, b); }));
  report("add, 64 elements", median_ns([&] { lamella::add(a64, b64); }));
  report("add_out", median_ns([&] { lamella::add_out(out, a, b); }));
  report("add_", median_ns([&] { a.add_(b); }));
  report("mul by a scalar", median_ns([&] { lamella::mul(a, 1.5); }));
  report("empty", median_ns([&] { lamella::empty({4}); }));
  report("view", median_ns([&] { matrix.view({2, 8}); }));
  report("transpose", median_ns([&] { matrix.transpose(0, 1); }));
  report("mm 4x4", median_ns([&] { lamella::mm(matrix, square); }));
  return 0;
}
