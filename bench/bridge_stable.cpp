// A peer of bench/bridge.py in PyTorch: log(cosh(x)) by PyTorch's stable interface. Gradients are
// registered in Python.
#define TORCH_TARGET_VERSION 0x020d000000000000  // 2.13
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cmath>

namespace {
torch::stable::Tensor logcosh(const torch::stable::Tensor& x) {
  if (x.scalar_type() != torch::headeronly::ScalarType::Float) {
    throw std::runtime_error("logcosh: expected 'x' to be float32");
  }
  auto from = x.is_contiguous() ? x : torch::stable::clone(x);
  auto out = torch::stable::empty_like(from);
  const float* a = from.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    const float each = std::abs(a[i]);
    to[i] = each + std::log1p(std::exp(-2 * each)) - 0.6931471805599453f;
  }
  return out;
}
}  // namespace

STABLE_TORCH_LIBRARY(bridge_stable, m) {
  m.def("plain(Tensor x) -> Tensor");
  m.def("differentiable(Tensor x) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(bridge_stable, CPU, m) {
  m.impl("plain", TORCH_BOX(&logcosh));
  m.impl("differentiable", TORCH_BOX(&logcosh));
}
