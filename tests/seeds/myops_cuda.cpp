// The kernel for CUDA, in a shared library of its own. It runs nothing on a device; the tests check
// which tensors reach it.
#include <torch/library.h>
#include <torch/torch.h>

using c10::DeviceType;
using torch::Tensor;

static Tensor sum_on_cuda(const Tensor& left, const Tensor& right) {
  TORCH_CHECK(left.sizes() == right.sizes());
  TORCH_INTERNAL_ASSERT(left.device().type() == DeviceType::CUDA);
  TORCH_INTERNAL_ASSERT(right.device().type() == DeviceType::CUDA);
  return torch::empty(left.sizes(), left.options());
}

TORCH_LIBRARY_IMPL(myops, CUDA, m) { m.impl("myadd", sum_on_cuda); }
