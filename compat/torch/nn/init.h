// lamella::nn::init: initial values of parameters. Each function fills its tensor in place.
#pragma once
#include <algorithm>
#include <cmath>

#include "lamella/layers/autograd/grad_mode.h"
#include "lamella/nn/options.h"

namespace lamella::nn::init {

LAMELLA_LAZY Tensor uniform_(Tensor tensor, double low = 0, double high = 1) {
  NoGradGuard guard;
  return tensor.uniform_(low, high);
}
LAMELLA_LAZY Tensor normal_(Tensor tensor, double mean = 0, double std = 1) {
  NoGradGuard guard;
  return tensor.normal_(mean, std);
}
LAMELLA_LAZY Tensor constant_(Tensor tensor, const Scalar& value) {
  NoGradGuard guard;
  return tensor.fill_(value);
}
LAMELLA_LAZY Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
LAMELLA_LAZY Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
LAMELLA_LAZY Tensor eye_(Tensor matrix) {
  LAMELLA_CHECK_VALUE(matrix.dim() == 2, "eye_: expected 'matrix' to have 2 dimensions, got ",
                      matrix.dim());
  NoGradGuard guard;
  matrix.zero_().diagonal().fill_(1);
  return matrix;
}

// The factor by which a layer with this nonlinearity keeps the variance.
LAMELLA_LAZY double calculate_gain(Word nonlinearity, double param = 0.01) {
  if (nonlinearity == kTanh) return 5.0 / 3.0;
  if (nonlinearity == kReLU) return std::sqrt(2.0);
  if (nonlinearity == kLeakyReLU) return std::sqrt(2.0 / (1 + param * param));
  return 1;
}
// The number of inputs of each output (fan-in), and of outputs of each input (fan-out).
LAMELLA_LAZY std::pair<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  LAMELLA_CHECK_VALUE(tensor.dim() >= 2,
                      "fan_in: expected 'tensor' to have at least 2 dimensions, got ",
                      tensor.dim());
  int64_t receptive = 1;
  for (int64_t size : tensor.sizes().slice(2)) receptive *= size;
  return {tensor.size(1) * receptive, tensor.size(0) * receptive};
}

namespace detail {
LAMELLA_LAZY double kaiming_std(const Tensor& tensor, double a, Word mode, Word nonlinearity) {
  auto [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
  return calculate_gain(nonlinearity, a) /
         std::sqrt(static_cast<double>(mode == kFanIn ? fan_in : fan_out));
}
LAMELLA_LAZY double xavier_std(const Tensor& tensor, double gain) {
  auto [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}
}  // namespace detail

// K. He, X. Zhang, S. Ren, J. Sun, Delving Deep into Rectifiers, 2015.
LAMELLA_LAZY Tensor kaiming_uniform_(Tensor tensor, double a = 0, Word mode = kFanIn,
                                     Word nonlinearity = kLeakyReLU) {
  double bound = std::sqrt(3.0) * detail::kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}
LAMELLA_LAZY Tensor kaiming_normal_(Tensor tensor, double a = 0, Word mode = kFanIn,
                                    Word nonlinearity = kLeakyReLU) {
  double std = detail::kaiming_std(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}
// X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks,
// 2010.
LAMELLA_LAZY Tensor xavier_uniform_(Tensor tensor, double gain = 1) {
  double bound = std::sqrt(3.0) * detail::xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound);
}
LAMELLA_LAZY Tensor xavier_normal_(Tensor tensor, double gain = 1) {
  double std = detail::xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std);
}
// Rows, or columns where there are fewer of them, that are orthogonal and of the length `gain`:
// A. Saxe, J. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep
// linear neural networks, 2014. All dimensions behind the first count as one.
LAMELLA_LAZY Tensor orthogonal_(Tensor tensor, double gain = 1) {
  LAMELLA_CHECK_VALUE(tensor.dim() >= 2,
                      "orthogonal_: expected 'tensor' to have at least 2 dimensions, got ",
                      tensor.dim());
  NoGradGuard guard;
  const int64_t rows = tensor.size(0), columns = tensor.numel() / std::max<int64_t>(rows, 1);
  Tensor drawn = lamella::randn({rows, columns}, tensor.options());
  if (rows < columns) drawn.t_();
  auto [q, r] = lamella::linalg_qr(drawn);
  q = q.mul(r.diagonal().sign());  // uniform among all such matrices
  if (rows < columns) q.t_();
  tensor.view_as(q).copy_(q).mul_(gain);
  return tensor;
}
// Sets all but a share `sparsity` of each column to normal numbers, and the others to zero:
// J. Martens, Deep learning via Hessian-free optimization, 2010.
LAMELLA_LAZY Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01) {
  LAMELLA_CHECK_VALUE(tensor.dim() == 2, "sparse_: expected 'tensor' to have 2 dimensions, got ",
                      tensor.dim());
  normal_(tensor, 0, std);
  NoGradGuard guard;
  const auto zeros =
      static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(tensor.size(0))));
  for (int64_t column = 0; column < tensor.size(1); ++column) {
    Tensor rows = lamella::randperm(tensor.size(0)).slice(0, 0, zeros);
    tensor.select(1, column).index_fill_(0, rows, 0);
  }
  return tensor;
}

}  // namespace lamella::nn::init
