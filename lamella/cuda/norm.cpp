// Launches the kernels of softmax and norms: kernels/norm.h.
#include <algorithm>

#include "lamella/cuda/line_launch.h"

#include "lamella/cuda/kernels/norm.h"

namespace lamella::cuda {
namespace {

Kind kind_of(const Tensor& t) { return static_cast<Kind>(line_kind(t.scalar_type())); }

bool launch_softmax(const char* kernel, const Tensor& x, const Tensor& y, const Tensor& grad,
                    int64_t size, int64_t inner, bool logarithm) {
  const char* suffix = wide_suffix(y.scalar_type());
  if (suffix == nullptr || x.scalar_type() != y.scalar_type()) return false;
  SoftmaxParameters p{};
  p.slices = y.numel() / size;
  p.size = size;
  p.inner = inner;
  p.x = address_of(x);
  p.y = address_of(y);
  p.grad = address_of(grad);
  p.kind = kind_of(y);
  p.logarithm = logarithm ? 1 : 0;
  p.pack = inner != 1 ? 1
                      : pack_of(y.scalar_type(),
                                p.x | p.y | p.grad | static_cast<uint64_t>(size) * y.itemsize());
  return launch_lines(y, kernel, suffix, &p,
                      team_shape(inner != 1, p.slices, (size + p.pack - 1) / p.pack));
}
bool softmax(const Tensor& x, const Tensor& y, int64_t size, int64_t inner, bool logarithm) {
  return launch_softmax("softmax", x, y, Tensor(), size, inner, logarithm);
}
bool softmax_backward(const Tensor& grad, const Tensor& y, const Tensor& x, int64_t size,
                      int64_t inner, bool logarithm) {
  return launch_softmax("softmax_backward", x, y, grad, size, inner, logarithm);
}

bool launch_norm(const char* kernel, NormParameters& p, const Tensor& x, const Tensor& weight,
                 const Tensor& mean, const Tensor& rstd, int64_t size, int64_t inner,
                 int64_t groups) {
  const char* suffix = wide_suffix(x.scalar_type());
  if (suffix == nullptr) return false;
  p.rows = rstd.numel();
  if (p.rows == 0) return true;
  p.size = size;
  p.inner = inner;
  p.groups = groups;
  p.x = address_of(x);
  p.weight = address_of(weight);
  p.mean = address_of(mean);
  p.rstd = address_of(rstd);
  p.kind = kind_of(x);
  // x and its gradient have one dtype, or gradients are not read in packs.
  p.pack = p.grad != 0 && p.kind != p.grad_kind
               ? 1
               : pack_of(x.scalar_type(),
                         p.x | p.y | p.grad | static_cast<uint64_t>(size) * x.itemsize());
  return launch_lines(x, kernel, suffix, &p,
                      team_shape(false, p.rows, (size + p.pack - 1) / p.pack));
}
bool norm(const Tensor& x, const Tensor& y, const Tensor& weight, const Tensor& bias,
          const Tensor& mean, const Tensor& rstd, int64_t size, int64_t inner, int64_t groups,
          double eps) {
  NormParameters p{};
  p.y = address_of(y);
  p.bias = address_of(bias);
  p.eps = eps;
  return launch_norm("norm_rows", p, x, weight, mean, rstd, size, inner, groups);
}
bool norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                   const Tensor& rstd, const Tensor& dx, int64_t size, int64_t inner,
                   int64_t groups) {
  NormParameters p{};
  p.y = address_of(dx);
  p.grad = address_of(dy);
  p.grad_kind = kind_of(dy);
  return launch_norm("norm_backward_rows", p, x, weight, mean, rstd, size, inner, groups);
}

Tensor norm_sums(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                 int64_t outer, int64_t channels, int64_t inner, int64_t per_outer,
                 int64_t per_channels) {
  const int64_t count = outer * inner;
  const bool across = inner == 1;
  Shape shape = team_shape(across, channels, count);
  const int64_t lanes = shape.block[across ? 1 : 0];
  const int64_t most = std::min<int64_t>(count / (lanes * 16), 256);
  int64_t parts =
      std::clamp<int64_t>(2 * busy_blocks(x, shape) / shape.grid[0], 1, std::max<int64_t>(1, most));
  NormSumParameters p{};
  p.outer = outer;
  p.channels = channels;
  p.inner = inner;
  p.per_outer = per_outer;
  p.per_channels = per_channels;
  p.part = std::max<int64_t>(1, (count + parts - 1) / parts);
  parts = std::max<int64_t>(1, (count + p.part - 1) / p.part);
  Tensor sums =
      lamella::empty({parts, 2, channels}, TensorOptions(rstd.scalar_type()).device(x.device()));
  p.x = address_of(x);
  p.grad = address_of(dy);
  p.mean = address_of(mean);
  p.rstd = address_of(rstd);
  p.sums = address_of(sums);
  p.kind = kind_of(x);
  p.grad_kind = kind_of(dy);
  shape.grid[1] = static_cast<unsigned>(parts);
  if (channels > 0) launch_lines(x, "norm_sums", wide_suffix(rstd.scalar_type()), &p, shape);
  return parts == 1 ? sums.select(0, 0) : sums.sum(IntArrayRef(0));
}

bool batch_statistics(const Tensor& mean, const Tensor& var, const Tensor& invstd,
                      const Tensor& running_mean, const Tensor& running_var, double eps,
                      double momentum, double factor) {
  BatchParameters p{};
  p.channels = mean.numel();
  if (p.channels == 0) return true;
  p.mean = address_of(mean);
  p.var = address_of(var);
  p.invstd = address_of(invstd);
  if (running_mean.defined()) {
    const ScalarType running = running_mean.scalar_type();
    const bool wider = running == ScalarType::Double && mean.scalar_type() == ScalarType::Float;
    if (line_kind(running) < kF32 || running != running_var.scalar_type() || wider) return false;
    if (mean.scalar_type() == ScalarType::Double && running != ScalarType::Double) return false;
    p.running_kind = kind_of(running_mean);
    p.running_mean = address_of(running_mean);
    p.running_var = address_of(running_var);
    p.running_mean_step = running_mean.stride(0);
    p.running_var_step = running_var.stride(0);
  }
  p.eps = eps;
  p.momentum = momentum;
  p.factor = factor;
  return launch_lines(mean, "batch_statistics", wide_suffix(mean.scalar_type()), &p,
                      element_shape(mean, p.channels));
}

bool launch_channels(ChannelParameters& p, const Tensor& x, const Tensor& y, const Tensor& mean,
                     const Tensor& invstd, const Tensor& weight, int64_t inner) {
  const char* suffix = wide_suffix(x.scalar_type());
  if (suffix == nullptr) return false;
  p.numel = x.numel();
  if (p.numel == 0) return true;
  p.channels = mean.numel();
  p.inner = inner;
  p.x = address_of(x);
  p.y = address_of(y);
  p.mean = address_of(mean);
  p.invstd = address_of(invstd);
  p.weight = address_of(weight);
  p.kind = kind_of(x);
  return launch_lines(x, "norm_channels", suffix, &p, element_shape(x, p.numel));
}
bool channel_norm(const Tensor& x, const Tensor& y, const Tensor& mean, const Tensor& invstd,
                  const Tensor& weight, const Tensor& bias, int64_t inner) {
  ChannelParameters p{};
  p.bias = address_of(bias);
  return launch_channels(p, x, y, mean, invstd, weight, inner);
}
bool channel_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& mean,
                           const Tensor& invstd, const Tensor& weight, const Tensor& sums,
                           const Tensor& dx, int64_t inner) {
  if (dy.scalar_type() != x.scalar_type()) return false;
  ChannelParameters p{};
  p.grad = address_of(dy);
  p.sums = address_of(sums);
  return launch_channels(p, x, dx, mean, invstd, weight, inner);
}

}  // namespace

void set_norms(native::DeviceLines& lines) {
  lines.softmax = &softmax;
  lines.softmax_backward = &softmax_backward;
  lines.norm = &norm;
  lines.norm_backward = &norm_backward;
  lines.norm_sums = &norm_sums;
  lines.batch_statistics = &batch_statistics;
  lines.channel_norm = &channel_norm;
  lines.channel_norm_backward = &channel_norm_backward;
}

}  // namespace lamella::cuda
