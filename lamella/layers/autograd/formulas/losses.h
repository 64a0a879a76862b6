// Derivatives of losses.
#pragma once
#include <array>
#include <tuple>

#include "lamella/api/tensor.h"

namespace lamella {

// Applies the reduction: 0 none, 1 mean, 2 sum.
Tensor reduce_loss(const Tensor& values, int64_t reduction);

// The gradients of the backward operators for self and target. `grad` is the gradient of what they
// return.
std::tuple<Tensor, Tensor> mse_loss_double_backward(const Tensor& grad, const Tensor& grad_output,
                                                    const Tensor& self, const Tensor& target,
                                                    int64_t reduction, std::array<bool, 2> wanted);
std::tuple<Tensor, Tensor> smooth_l1_loss_double_backward(const Tensor& grad,
                                                          const Tensor& grad_output,
                                                          const Tensor& self, const Tensor& target,
                                                          int64_t reduction, double beta,
                                                          std::array<bool, 2> wanted);
std::tuple<Tensor, Tensor> huber_loss_double_backward(const Tensor& grad, const Tensor& grad_output,
                                                      const Tensor& self, const Tensor& target,
                                                      int64_t reduction, double delta,
                                                      std::array<bool, 2> wanted);
std::tuple<Tensor, Tensor> soft_margin_loss_double_backward(const Tensor& grad,
                                                            const Tensor& grad_output,
                                                            const Tensor& self,
                                                            const Tensor& target, int64_t reduction,
                                                            std::array<bool, 2> wanted);
// weight may be undefined.
std::tuple<Tensor, Tensor> binary_cross_entropy_double_backward(
    const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
    const Tensor& weight, int64_t reduction, std::array<bool, 2> wanted);
Tensor binary_cross_entropy_target_backward(const Tensor& grad, const Tensor& self,
                                            const Tensor& weight, int64_t reduction);

}  // namespace lamella
