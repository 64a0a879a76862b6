// Operators over PyTorch's stable interface.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch_v2.h>
#include <torch/headeronly/core/ScalarType.h>

#include <tuple>
#include <vector>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace {

// y[t] = x[t] - a * y[t - 1], a recurrence along the last dimension.
template <class scalar_t>
void recur(const Tensor& x, double a, Tensor& y) {
  const auto* in = reinterpret_cast<const scalar_t*>(x.data_ptr());
  auto* out = reinterpret_cast<scalar_t*>(y.data_ptr());
  int64_t length = x.size(-1), rows = x.numel() / length;
  torch::stable::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      scalar_t last = 0;
      for (int64_t t = 0; t < length; ++t) {
        out[r * length + t] = last = in[r * length + t] - static_cast<scalar_t>(a) * last;
      }
    }
  });
}
Tensor recurrence(Tensor x, double a) {
  STD_TORCH_CHECK(x.is_cpu() && x.is_contiguous(), "recurrence: expected a contiguous x");
  STD_TORCH_CHECK(x.dim() >= 1);
  Tensor y = torch::stable::empty_like(x);
  THO_DISPATCH_V2(x.scalar_type(), "recurrence", AT_WRAP([&] { recur<scalar_t>(x, a, y); }),
                  AT_FLOATING_TYPES);
  return y;
}
std::tuple<Tensor, Tensor> parts(Tensor x, int64_t at, bool fill) {
  Tensor first = torch::stable::narrow(x, 0, 0, at);
  Tensor made = torch::stable::new_empty(x, {at, 2}, ScalarType::Double);
  torch::stable::fill_(made, fill ? 1.5 : 0.0);
  return {torch::stable::transpose(first, 0, 1), made};
}
Tensor most(Tensor x) { return torch::stable::amax(x, {}); }
// In words.
void boxed_or(StableIValue* stack, uint64_t, uint64_t) {
  Tensor x = to<Tensor>(stack[0]);
  auto other = to<std::optional<Tensor>>(stack[1]);
  auto scale = to<double>(stack[2]);
  Tensor made = torch::stable::empty_like(x);
  torch::stable::copy_(made, other.has_value() ? *other : x);
  if (scale != 0) torch::stable::fill_(made, scale);
  stack[0] = from(made);
}

}  // namespace

STABLE_TORCH_LIBRARY(compat_stable, m) {
  m.def("recurrence(Tensor x, float a) -> Tensor");
  m.def("parts(Tensor x, int at, bool fill) -> (Tensor, Tensor)");
  m.def("boxed_or(Tensor x, Tensor? other, float scale) -> Tensor");
}
STABLE_TORCH_LIBRARY_FRAGMENT(compat_stable, m) { m.def("most(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(compat_stable, CPU, m) {
  m.impl("recurrence", TORCH_BOX(&recurrence));
  m.impl("parts", TORCH_BOX(&parts));
  m.impl("most", TORCH_BOX(&most));
}
STABLE_TORCH_LIBRARY_IMPL(compat_stable, CompositeExplicitAutograd, m) {
  m.impl("boxed_or", &boxed_or);
}
