// Calls one operator with a kernel for autograd and one for the CPU, to show the dispatch trace.
#include <torch/library.h>
#include <torch/torch.h>

static torch::Tensor step(const torch::Tensor& self);
static torch::Tensor step_cpu(const torch::Tensor& self) { return self; }
static torch::Tensor step_autograd(const torch::Tensor& self) {
  at::AutoDispatchBelowADInplaceOrView guard;
  return step(self);
}
TORCH_LIBRARY(traced, m) { m.def("step(Tensor self) -> Tensor"); }
TORCH_LIBRARY_IMPL(traced, CPU, m) { m.impl("step", step_cpu); }
TORCH_LIBRARY_IMPL(traced, Autograd, m) { m.impl("step", step_autograd); }

static torch::Tensor step(const torch::Tensor& self) {
  static auto op =
      torch::Dispatcher::singleton().findSchemaOrThrow("traced::step", "").typed<decltype(step)>();
  return op.call(self);
}

int main() { return step(torch::empty({1})).defined() ? 0 : 1; }
