// The peers of bench/bridge.py in PyTorch: log(cosh(x)) by TORCH_LIBRARY with torch's headers,
// without a gradient and as a C++ autograd::Function.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cmath>

namespace {
at::Tensor logcosh(const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "logcosh: expected 'x' to be float32");
  at::Tensor from = x.contiguous(), out = at::empty_like(from);
  const float* a = from.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    const float n = std::abs(a[i]);
    to[i] = n + std::log1p(std::exp(-2 * n)) - 0.6931471805599453f;
  }
  return out;
}
struct Logcosh : torch::autograd::Function<Logcosh> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x});
    return logcosh(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    return {grads[0] * ctx->get_saved_variables()[0].tanh()};
  }
};
}  // namespace

TORCH_LIBRARY(bridge_peer, m) {
  m.def("plain(Tensor x) -> Tensor");
  m.def("differentiable(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(bridge_peer, CPU, m) {
  m.impl("plain", logcosh);
  m.impl("differentiable", logcosh);
}
TORCH_LIBRARY_IMPL(bridge_peer, Autograd, m) {
  m.impl("differentiable", [](const at::Tensor& x) { return Logcosh::apply(x); });
}
