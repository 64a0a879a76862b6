// Derivatives of losses, and their double backwards.
#include "lamella/layers/autograd/formulas/losses.h"

#include "lamella/api/functions.h"
#include "lamella/api/tensor_operators.h"

namespace lamella {

namespace {
// The gradient that reaches each element of a loss over `count` elements.
Tensor share(const Tensor& grad, int64_t count, int64_t reduction) {
  return reduction == 1 ? grad / static_cast<double>(count) : grad;
}
// The double backward of a loss of self - target, from the second derivative of that loss.
std::tuple<Tensor, Tensor> of_difference(const Tensor& grad, const Tensor& grad_output,
                                         const Tensor& curvature, int64_t reduction,
                                         std::array<bool, 2> wanted) {
  Tensor for_self = grad * share(grad_output, curvature.numel(), reduction) * curvature;
  return {wanted[0] ? for_self : Tensor(), wanted[1] ? -for_self : Tensor()};
}
}  // namespace

Tensor reduce_loss(const Tensor& values, int64_t reduction) {
  if (reduction == 1) return values.mean();
  return reduction == 2 ? values.sum() : values;
}

std::tuple<Tensor, Tensor> mse_loss_double_backward(const Tensor& grad, const Tensor& grad_output,
                                                    const Tensor& self, const Tensor& target,
                                                    int64_t reduction, std::array<bool, 2> wanted) {
  return of_difference(grad, grad_output, full_like(grad, 2), reduction, wanted);
}
std::tuple<Tensor, Tensor> smooth_l1_loss_double_backward(const Tensor& grad,
                                                          const Tensor& grad_output,
                                                          const Tensor& self, const Tensor& target,
                                                          int64_t reduction, double beta,
                                                          std::array<bool, 2> wanted) {
  Tensor inside = (self - target).abs().lt(beta).to(grad.scalar_type());
  return of_difference(grad, grad_output, beta > 0 ? inside / beta : inside, reduction, wanted);
}
std::tuple<Tensor, Tensor> huber_loss_double_backward(const Tensor& grad, const Tensor& grad_output,
                                                      const Tensor& self, const Tensor& target,
                                                      int64_t reduction, double delta,
                                                      std::array<bool, 2> wanted) {
  Tensor inside = (self - target).abs().lt(delta).to(grad.scalar_type());
  return of_difference(grad, grad_output, inside, reduction, wanted);
}

std::tuple<Tensor, Tensor> soft_margin_loss_double_backward(const Tensor& grad,
                                                            const Tensor& grad_output,
                                                            const Tensor& self,
                                                            const Tensor& target, int64_t reduction,
                                                            std::array<bool, 2> wanted) {
  // The first derivative is -t s with s = sigmoid(-t x).
  Tensor s = (-(self * target)).sigmoid(), spread = s * (-s + 1);
  Tensor each = grad * share(grad_output, grad.numel(), reduction);
  return {wanted[0] ? each * target * target * spread : Tensor(),
          wanted[1] ? each * (target * self * spread - s) : Tensor()};
}

Tensor binary_cross_entropy_target_backward(const Tensor& grad, const Tensor& self,
                                            const Tensor& weight, int64_t reduction) {
  Tensor slope = (-self).log1p().clamp_min(-100) - self.log().clamp_min(-100);
  Tensor each = share(grad, self.numel(), reduction) * slope;
  return weight.defined() ? each * weight : each;
}
std::tuple<Tensor, Tensor> binary_cross_entropy_double_backward(
    const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
    const Tensor& weight, int64_t reduction, std::array<bool, 2> wanted) {
  // The first derivative is (x - t) / (x (1 - x)).
  Tensor each = grad * share(grad_output, self.numel(), reduction);
  if (weight.defined()) each = each * weight;
  Tensor spread = (self * (-self + 1)).clamp_min(1e-12);
  Tensor for_self, for_target;
  if (wanted[0]) {
    for_self = each * (self * self - 2 * self * target + target) / (spread * spread);
  }
  if (wanted[1]) for_target = -each / spread;
  return {for_self, for_target};
}

}  // namespace lamella
