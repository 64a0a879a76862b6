// The kernel of another backend, in another shared library; Meta stands for a device here.
#include <torch/library.h>
#include <torch/torch.h>

static torch::Tensor sum_on_meta(const torch::Tensor& left, const torch::Tensor& right) {
  TORCH_CHECK(left.sizes() == right.sizes(), "myadd: expected 'other' to have the shape ",
              left.sizes(), ", got ", right.sizes());
  return torch::empty(left.sizes(), left.options());
}

TORCH_LIBRARY_IMPL(myops, Meta, m) { m.impl("myadd", TORCH_FN(sum_on_meta)); }
