// The functions that formulas of derive_derivatives.yaml call.
#pragma once
#include "lamella/lamella.h"

namespace derive {

// Calls made so far, and the sizes that the last one was given.
extern int scaled_calls;
extern std::vector<int64_t> scaled_sizes;
extern std::array<bool, 2> join_mask;

lamella::Tensor scaled(const lamella::Tensor& grad, lamella::IntArrayRef sizes, double factor);
std::tuple<lamella::Tensor, lamella::Tensor> join_gradients(const lamella::Tensor& grad, bool has_y,
                                                            std::array<bool, 2> wanted);

// Counts its calls, and doubles.
extern int meta_calls;
lamella::Tensor of_meta(const lamella::Tensor& grad);

lamella::Tensor maybe_gradient(lamella::TensorList grads);

// Creates a tensor and stores it in kept_gradients, where the test checks its reference count.
extern std::vector<lamella::Tensor> kept_gradients;
lamella::Tensor kept(const lamella::Tensor& grad);
lamella::Tensor torn_gradient(const lamella::Tensor& grad);

}  // namespace derive
