// Derivatives of linear maps, convolution, pooling, embedding, dropout and attention.
#pragma once
#include <array>
#include <tuple>

#include "lamella/api/tensor.h"
#include "lamella/layers/autograd/formulas/norms.h"

namespace lamella {

// Gradients of input, weight and bias, of any ranks that linear takes; undefined where not wanted.
std::tuple<Tensor, Tensor, Tensor> linear_gradients(const Tensor& input, const Tensor& grad,
                                                    const Tensor& weight,
                                                    std::array<bool, 3> wanted);
// Tangents may be undefined.
Tensor linear_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                      const Tensor& weight_t, const Tensor& bias_t);
// `grads` are those of the gradients of input, weight and bias; any may be undefined.
std::tuple<Tensor, Tensor, Tensor> linear_double_backward(TensorList grads, const Tensor& input,
                                                          const Tensor& grad_output,
                                                          const Tensor& weight,
                                                          std::array<bool, 3> wanted);
// Tangents of the gradients, those of the formulas named so; undefined where not wanted.
ThreeGradients linear_backward_forward(const Tensor& input_p, const Tensor& input_t,
                                       const Tensor& grad_p, const Tensor& grad_t,
                                       const Tensor& weight_p, const Tensor& weight_t,
                                       std::array<bool, 3> wanted);
ThreeGradients convolution_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                            const Tensor& input_p, const Tensor& input_t,
                                            const Tensor& weight_p, const Tensor& weight_t,
                                            OptionalIntArrayRef bias_sizes, IntArrayRef stride,
                                            IntArrayRef padding, IntArrayRef dilation,
                                            bool transposed, IntArrayRef output_padding,
                                            int64_t groups, std::array<bool, 3> wanted);

Tensor convolution_forward_mode(const Tensor& input_p, const Tensor& input_t,
                                const Tensor& weight_p, const Tensor& weight_t,
                                const Tensor& bias_t, IntArrayRef stride, IntArrayRef padding,
                                IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                int64_t groups);
// For grad_output, input and weight.
std::tuple<Tensor, Tensor, Tensor> convolution_double_backward(
    TensorList grads, const Tensor& grad_output, const Tensor& input, const Tensor& weight,
    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
    IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted);

// The elements that a pooling over the last `spatial` dimensions chose: `indices` count through
// them.
Tensor gather_pooled(const Tensor& tensor, const Tensor& indices, int64_t spatial);

// Rows of `grad` for the indices, with what embedding_dense_backward leaves out as zeros.
Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx, bool scale_grad_by_freq);

// The factor by which native_dropout multiplies kept elements.
double dropout_scale(double p, std::optional<bool> train);

// attn_mask and dropout_mask may be undefined. Gradients of query, key and value.
std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& output, const Tensor& logsumexp,
                                                      const Tensor& attn_mask,
                                                      const Tensor& dropout_mask, bool is_causal,
                                                      std::optional<double> scale,
                                                      std::array<bool, 3> wanted);
Tensor attention_forward(const Tensor& query_p, const Tensor& query_t, const Tensor& key_p,
                         const Tensor& key_t, const Tensor& value_p, const Tensor& value_t,
                         const Tensor& attn_mask, const Tensor& dropout_mask, bool is_causal,
                         std::optional<double> scale);

}  // namespace lamella
