// Launches the kernels of losses: kernels/loss.h.
#include "lamella/cuda/line_launch.h"

#include "lamella/cuda/kernels/loss.h"

namespace lamella::cuda {
namespace {

bool launch_loss(const char* kernel, LossParameters& p, int loss, const Tensor& x,
                 const Tensor& target, const Tensor& out, double beta) {
  p.numel = x.numel();
  if (p.numel == 0) return true;
  p.x = address_of(x);
  p.target = address_of(target);
  p.out = address_of(out);
  p.loss = loss;
  p.beta = beta;
  return launch_lines(x, kernel, wide_suffix(x.scalar_type()), &p, element_shape(x, p.numel));
}
bool loss(int loss, const Tensor& x, const Tensor& target, const Tensor& out, double beta) {
  LossParameters p{};
  return launch_loss("loss", p, loss, x, target, out, beta);
}
bool loss_backward(int loss, const Tensor& x, const Tensor& target, const Tensor& grad,
                   const Tensor& out, double beta, double scale) {
  LossParameters p{};
  p.grad = address_of(grad);
  p.one = grad.dim() == 0 ? 1 : 0;
  p.scale = scale;
  return launch_loss("loss_backward", p, loss, x, target, out, beta);
}

bool launch_classes(const char* kernel, ClassParameters& p, const Tensor& on, const Tensor& target,
                    const Tensor& weight, const Tensor& out, int64_t classes, int64_t inner,
                    int64_t ignored) {
  const char* suffix = wide_suffix(on.scalar_type());
  if (suffix == nullptr) return false;
  p.numel = target.numel();
  if (p.numel == 0) return true;
  p.classes = classes;
  p.inner = inner;
  p.ignored = ignored;
  p.target = address_of(target);
  p.weight = address_of(weight);
  p.out = address_of(out);
  p.kind = static_cast<Kind>(line_kind(on.scalar_type()));
  p.bytes_target = target.scalar_type() == ScalarType::Byte ? 1 : 0;
  return launch_lines(on, kernel, suffix, &p, element_shape(on, p.numel));
}
bool nll(const Tensor& x, const Tensor& target, const Tensor& weight, const Tensor& out,
         int64_t classes, int64_t inner, int64_t ignored) {
  ClassParameters p{};
  p.x = address_of(x);
  return launch_classes("nll", p, x, target, weight, out, classes, inner, ignored);
}
bool nll_backward(const Tensor& grad, const Tensor& target, const Tensor& weight,
                  const Tensor& total, const Tensor& dx, int64_t classes, int64_t inner,
                  int64_t ignored) {
  ClassParameters p{};
  p.grad = address_of(grad);
  p.one = grad.dim() == 0 ? 1 : 0;
  p.total = address_of(total);
  return launch_classes("nll_backward", p, dx, target, weight, dx, classes, inner, ignored);
}

}  // namespace

void set_losses(native::DeviceLines& lines) {
  lines.nll = &nll;
  lines.nll_backward = &nll_backward;
  lines.loss = &loss;
  lines.loss_backward = &loss_backward;
}

}  // namespace lamella::cuda
