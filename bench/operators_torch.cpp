// The rows of operators.cpp and dispatch.cpp with libtorch.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include "bench/timing.h"

using bench::median_ns;
using bench::report;

namespace {
__attribute__((noinline)) int64_t noop(const at::Tensor& self, const at::Tensor& other) {
  asm volatile("" ::: "memory");
  return self.numel();
}
void noop_boxed(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  int64_t n = (*stack)[stack->size() - 2].toTensor().numel();
  torch::jit::drop(*stack, 2);
  stack->emplace_back(n);
}
}  // namespace

TORCH_LIBRARY(bench, m) {
  m.def("noop(Tensor self, Tensor other) -> int");
  m.def("boxed(Tensor self, Tensor other) -> int");
}
TORCH_LIBRARY_IMPL(bench, CPU, m) {
  m.impl("noop", TORCH_FN(noop));
  m.impl("boxed", torch::CppFunction::makeFromBoxedFunction<&noop_boxed>());
}

int main() {
  at::Tensor a = at::ones({1}), b = at::ones({1}), out = at::empty({1});
  at::Tensor a64 = at::ones({64}), b64 = at::ones({64});
  at::Tensor matrix = at::ones({4, 4}), square = at::ones({4, 4});
  auto& dispatcher = c10::Dispatcher::singleton();
  auto op = dispatcher.findSchemaOrThrow("bench::noop", "").typed<decltype(noop)>();
  auto boxed_op = dispatcher.findSchemaOrThrow("bench::boxed", "").typed<decltype(noop)>();
  int64_t sum = 0;
  double direct = median_ns([&] { sum += noop(a, b); });
  report("typed call over direct", median_ns([&] { sum += op.call(a, b); }) - direct);
  report("boxed call over direct", median_ns([&] {
                                     torch::jit::Stack stack{a, b};
                                     op.callBoxed(&stack);
                                     sum += stack[0].toInt();
                                   }) - direct);
  report("typed call of a boxed-only kernel over direct",
         median_ns([&] { sum += boxed_op.call(a, b); }) - direct);
  {
    c10::InferenceMode guard;
    at::Tensor x = at::ones({1}), y = at::ones({1});
    report("typed call over direct, inference mode",
           median_ns([&] { sum += op.call(x, y); }) - direct);
  }
  report("find by name", median_ns([&] {
           sum += dispatcher.findSchema({"bench::noop", ""})->schema().arguments().size();
         }));
  report("add, 1 element", median_ns([&] { at::add(a, b); }));
  report("add, 64 elements", median_ns([&] { at::add(a64, b64); }));
  report("add_out", median_ns([&] { at::add_out(out, a, b); }));
  report("add_", median_ns([&] { a.add_(b); }));
  report("mul by a scalar", median_ns([&] { at::mul(a, 1.5); }));
  report("empty", median_ns([&] { at::empty({4}); }));
  report("view", median_ns([&] { matrix.view({2, 8}); }));
  report("transpose", median_ns([&] { matrix.transpose(0, 1); }));
  report("mm 4x4", median_ns([&] { at::mm(matrix, square); }));
  return sum == 42 ? 1 : 0;
}
