// Derivatives of normalisation.
//
// Note [The derivative of a norm]
//   With n = (x - mean) * rstd, where mean and rstd come from the `count` elements of a set, and
//   out = n * weight + bias, a gradient g of n passes to x as rstd * P(g), where
//     P(g) = g - average(g) - n * average(g * n)
//   is symmetric: P is its own backward for constant x. A norm that subtracts no mean has no
//   average(g). Statistics that do not come from x leave P(g) = g.
#pragma once
#include <array>
#include <tuple>

#include "lamella/api/tensor.h"

namespace lamella {

using ThreeGradients = std::tuple<Tensor, Tensor, Tensor>;

// The tangent of the output; tangents and parameters may be undefined. An undefined mean: an RMS
// norm.
Tensor layer_norm_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                          const Tensor& weight_t, const Tensor& bias_t, const Tensor& mean,
                          const Tensor& rstd, IntArrayRef normalized_shape);
Tensor group_norm_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                          const Tensor& weight_t, const Tensor& bias_t, const Tensor& mean,
                          const Tensor& rstd, int64_t samples, int64_t channels, int64_t positions,
                          int64_t groups);
// The tangents of the mean and the rstd of each group.
Tensor group_mean_forward(const Tensor& input_t, const Tensor& mean, int64_t samples,
                          int64_t channels, int64_t positions, int64_t groups);
Tensor group_rstd_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& mean,
                          const Tensor& rstd, int64_t samples, int64_t channels, int64_t positions,
                          int64_t groups);
Tensor batch_norm_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                          const Tensor& weight_t, const Tensor& bias_t, const Tensor& running_mean,
                          const Tensor& running_var, const Tensor& mean, const Tensor& rstd,
                          bool training, double eps);

// For input, weight and bias; `grads` are those of the output, the mean and the rstd, any of them
// undefined.
ThreeGradients group_norm_backward(TensorList grads, const Tensor& input, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& weight, int64_t samples,
                                   int64_t channels, int64_t positions, int64_t groups,
                                   std::array<bool, 3> wanted);

// The double backwards: `grads` are those of the gradients of input, weight and bias, any of them
// undefined. The result is for grad_out, input and weight. `wanted` has 3 entries.
ThreeGradients layer_norm_double_backward(TensorList grads, const Tensor& grad_out,
                                          const Tensor& input, IntArrayRef normalized_shape,
                                          const Tensor& mean, const Tensor& rstd,
                                          const Tensor& weight, std::array<bool, 3> wanted);
ThreeGradients group_norm_double_backward(TensorList grads, const Tensor& grad_out,
                                          const Tensor& input, const Tensor& mean,
                                          const Tensor& rstd, const Tensor& weight, int64_t samples,
                                          int64_t channels, int64_t positions, int64_t groups,
                                          std::array<bool, 3> wanted);
ThreeGradients batch_norm_double_backward(TensorList grads, const Tensor& grad_out,
                                          const Tensor& input, const Tensor& weight,
                                          const Tensor& running_mean, const Tensor& running_var,
                                          const Tensor& mean, const Tensor& rstd, bool training,
                                          double eps, std::array<bool, 3> wanted);

// Tangents of the gradients of input, weight and bias that the backwards give; undefined where not
// wanted.
ThreeGradients layer_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                           const Tensor& input_p, const Tensor& input_t,
                                           IntArrayRef normalized_shape, const Tensor& mean,
                                           const Tensor& rstd, const Tensor& weight_p,
                                           const Tensor& weight_t, std::array<bool, 3> wanted);
std::tuple<Tensor, Tensor> rms_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                                     const Tensor& input_p, const Tensor& input_t,
                                                     IntArrayRef normalized_shape,
                                                     const Tensor& rstd, const Tensor& weight_p,
                                                     const Tensor& weight_t,
                                                     std::array<bool, 2> wanted);
ThreeGradients group_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                           const Tensor& input_p, const Tensor& input_t,
                                           const Tensor& rstd, const Tensor& weight_p,
                                           const Tensor& weight_t, int64_t samples,
                                           int64_t channels, int64_t positions, int64_t groups,
                                           std::array<bool, 3> wanted);
ThreeGradients batch_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                           const Tensor& input_p, const Tensor& input_t,
                                           const Tensor& weight_p, const Tensor& weight_t,
                                           const Tensor& running_mean, const Tensor& running_var,
                                           const Tensor& rstd, bool training, double eps,
                                           std::array<bool, 3> wanted);

}  // namespace lamella
