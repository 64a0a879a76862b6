// Derivatives of linear maps, convolution, pooling, embedding, dropout and attention.
#include "lamella/layers/autograd/formulas/nn.h"

#include <cmath>
#include <vector>

#include "lamella/layers/autograd/formulas/common.h"

namespace lamella {

namespace {
// The last dimension as columns, all others as rows.
Tensor as_matrix(const Tensor& tensor) {
  if (tensor.dim() == 2) return tensor;
  return tensor.reshape({-1, tensor.size(-1)});
}
}  // namespace

// ---- linear ----

std::tuple<Tensor, Tensor, Tensor> linear_gradients(const Tensor& input, const Tensor& grad,
                                                    const Tensor& weight,
                                                    std::array<bool, 3> wanted) {
  if (weight.dim() == 2 && grad.dim() == input.dim() && input.numel() != 0) {
    return linear_backward(input, grad, weight, wanted);
  }
  // One output feature, or a bias that broadcasts: `grad` has a shape of its own.
  Tensor for_input, for_weight;
  Tensor rows = weight.dim() == 2 ? weight : weight.unsqueeze(0);
  std::vector<int64_t> shape(input.sizes().begin(), input.sizes().end());
  if (wanted[0] || wanted[1]) {
    shape.back() = rows.size(0);
    Tensor g = weight.dim() == 2
                   ? sum_to(grad, shape)
                   : sum_to(grad, input.sizes().slice(0, input.sizes().size() - 1)).unsqueeze(-1);
    if (wanted[0]) for_input = g.matmul(conj_of(rows));
    if (wanted[1]) {
      for_weight = as_matrix(g).t().mm(conj_of(as_matrix(input))).reshape(weight.sizes());
    }
  }
  return {for_input, for_weight, wanted[2] ? grad : Tensor()};
}
Tensor linear_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                      const Tensor& weight_t, const Tensor& bias_t) {
  Tensor out;
  if (input_t.defined()) add_to(out, linear(input_t, weight_p));
  if (weight_t.defined()) add_to(out, linear(input_p, weight_t));
  if (bias_t.defined())
    add_to(out, out.defined() ? bias_t : linear(input_p, weight_p) * 0 + bias_t);
  return out;
}
std::tuple<Tensor, Tensor, Tensor> linear_double_backward(TensorList grads, const Tensor& input,
                                                          const Tensor& grad_output,
                                                          const Tensor& weight,
                                                          std::array<bool, 3> wanted) {
  Tensor for_input, for_grad, for_weight;
  if (grads[0].defined()) {
    if (wanted[1]) add_to(for_grad, linear(grads[0], weight));
    if (wanted[2]) {
      add_to(for_weight, as_matrix(grad_output).t().mm(conj_of(as_matrix(grads[0]))));
    }
  }
  if (grads[1].defined()) {
    if (wanted[0]) add_to(for_input, grad_output.matmul(conj_of(grads[1])));
    if (wanted[1]) add_to(for_grad, linear(input, grads[1]));
  }
  if (grads[2].defined() && wanted[1]) add_to(for_grad, grads[2].expand(grad_output.sizes()));
  return {for_input, for_grad, for_weight};
}

// The tangent of a function bilinear in two arguments: the sum of its values with either argument
// replaced by its tangent.
namespace {
ThreeGradients sum_of(const ThreeGradients& a, const ThreeGradients& b) {
  auto sum = [](const Tensor& x, const Tensor& y) {
    return x.defined() && y.defined() ? x + y : (x.defined() ? x : y);
  };
  return {sum(std::get<0>(a), std::get<0>(b)), sum(std::get<1>(a), std::get<1>(b)),
          sum(std::get<2>(a), std::get<2>(b))};
}
}  // namespace

ThreeGradients linear_backward_forward(const Tensor& input_p, const Tensor& input_t,
                                       const Tensor& grad_p, const Tensor& grad_t,
                                       const Tensor& weight_p, const Tensor& weight_t,
                                       std::array<bool, 3> wanted) {
  return sum_of(linear_backward(input_p, grad_t, weight_p, wanted),
                linear_backward(input_t, grad_p, weight_t, {wanted[0], wanted[1], false}));
}

// ---- Convolution ----

Tensor convolution_forward_mode(const Tensor& input_p, const Tensor& input_t,
                                const Tensor& weight_p, const Tensor& weight_t,
                                const Tensor& bias_t, IntArrayRef stride, IntArrayRef padding,
                                IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                                int64_t groups) {
  auto convolve = [&](const Tensor& x, const Tensor& w, const Tensor& b) {
    return convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups);
  };
  Tensor out;
  if (input_t.defined()) add_to(out, convolve(input_t, weight_p, bias_t));
  if (weight_t.defined()) {
    add_to(out, convolve(input_p, weight_t, out.defined() ? Tensor() : bias_t));
  }
  if (!out.defined() && bias_t.defined()) {
    out = convolve(input_p, zeros_like(weight_p), bias_t);
  }
  return out;
}
std::tuple<Tensor, Tensor, Tensor> convolution_double_backward(
    TensorList grads, const Tensor& grad_output, const Tensor& input, const Tensor& weight,
    IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
    IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  auto convolve = [&](const Tensor& x, const Tensor& w) {
    return convolution(x, w, std::nullopt, stride, padding, dilation, transposed, output_padding,
                       groups);
  };
  auto backward = [&](const Tensor& x, const Tensor& w, bool of_input) {
    return convolution_backward(conj_of(grad_output), x, w, std::nullopt, stride, padding, dilation,
                                transposed, output_padding, groups, {of_input, !of_input, false});
  };
  Tensor for_grad, for_input, for_weight;
  if (wanted[0]) {
    if (grads[0].defined()) add_to(for_grad, convolve(grads[0], conj_of(weight)));
    if (grads[1].defined()) add_to(for_grad, convolve(conj_of(input), grads[1]));
    if (grads[2].defined()) {
      std::vector<int64_t> shape(static_cast<size_t>(grad_output.dim()), 1);
      shape[1] = grads[2].numel();
      add_to(for_grad, grads[2].reshape(shape).expand(grad_output.sizes()));
    }
  }
  if (wanted[1] && grads[1].defined()) for_input = std::get<0>(backward(input, grads[1], true));
  if (wanted[2] && grads[0].defined()) for_weight = std::get<1>(backward(grads[0], weight, false));
  return {for_grad, for_input, for_weight};
}

ThreeGradients convolution_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                            const Tensor& input_p, const Tensor& input_t,
                                            const Tensor& weight_p, const Tensor& weight_t,
                                            OptionalIntArrayRef bias_sizes, IntArrayRef stride,
                                            IntArrayRef padding, IntArrayRef dilation,
                                            bool transposed, IntArrayRef output_padding,
                                            int64_t groups, std::array<bool, 3> wanted) {
  auto backward = [&](const Tensor& grad, const Tensor& x, const Tensor& w, bool of_bias) {
    return convolution_backward(grad, x, w, bias_sizes, stride, padding, dilation, transposed,
                                output_padding, groups, {wanted[0], wanted[1], of_bias});
  };
  return sum_of(backward(grad_t, input_p, weight_p, wanted[2]),
                backward(grad_p, input_t, weight_t, false));
}

// ---- Pooling, embedding, dropout ----

Tensor gather_pooled(const Tensor& tensor, const Tensor& indices, int64_t spatial) {
  int64_t first = tensor.dim() - spatial;
  return tensor.flatten(first, -1).gather(-1, indices.flatten(first, -1)).reshape(indices.sizes());
}

Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                 int64_t padding_idx, bool scale_grad_by_freq) {
  Tensor flat = indices.reshape({-1}).to(kLong);
  Tensor left_out = flat.eq(padding_idx);
  Tensor rows = grad.index_select(0, flat.masked_fill(left_out, 0));
  Tensor factor = left_out.logical_not().to(grad.scalar_type());
  if (scale_grad_by_freq) {
    Tensor uses = zeros({num_weights}, grad.options()).index_add(0, flat, ones_like(factor));
    factor = factor / uses.index_select(0, flat);
  }
  std::vector<int64_t> shape(indices.sizes().begin(), indices.sizes().end());
  shape.push_back(grad.size(1));
  return (rows * factor.unsqueeze(1)).reshape(shape);
}

double dropout_scale(double p, std::optional<bool> train) {
  if (train.has_value() && !*train) return 1;
  return p == 1 ? 0 : 1 / (1 - p);
}

// ---- Attention ----

namespace {
// Keys or values for each head of the query, and back: the sums over the heads that shared one.
Tensor for_heads(const Tensor& shared, int64_t heads) {
  int64_t have = shared.size(1);
  return have == heads ? shared : shared.repeat_interleave(heads / have, 1);
}
Tensor of_heads(const Tensor& grad, int64_t have) {
  if (grad.size(1) == have) return grad;
  const int64_t parts[2] = {have, grad.size(1) / have};
  return grad.unflatten(1, parts).sum(IntArrayRef(int64_t{2}));
}

struct Attention {
  Tensor weights, noise;
  double factor;

  Attention(const Tensor& query, const Tensor& key, const Tensor& mask, const Tensor& dropout_mask,
            bool is_causal, std::optional<double> scale)
      : noise(dropout_mask),
        factor(scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))))) {
    Tensor scores = query.matmul(key.transpose(-2, -1)) * factor;
    const double nothing = -HUGE_VAL;
    if (is_causal) {
      Tensor seen = ones({query.size(-2), key.size(-2)}, query.options().dtype(kBool)).tril();
      scores = scores.masked_fill(seen.logical_not(), nothing);
    } else if (mask.defined()) {
      scores = mask.scalar_type() == kBool ? scores.masked_fill(mask.logical_not(), nothing)
                                           : scores + mask;
    }
    weights = softmax(scores, -1);
    if (mask.defined()) {  // a fully masked query gets zero weights
      weights = weights.masked_fill(scores.eq(nothing).all(-1, true), 0);
    }
  }
  Tensor dropped(const Tensor& x) const { return noise.defined() ? x * noise : x; }
  // The derivative of softmax, which is symmetric.
  Tensor through_softmax(const Tensor& g) const {
    Tensor product = weights * g;
    return product - weights * product.sum(IntArrayRef(int64_t{-1}), true);
  }
};
}  // namespace

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& output, const Tensor& logsumexp,
                                                      const Tensor& attn_mask,
                                                      const Tensor& dropout_mask, bool is_causal,
                                                      std::optional<double> scale,
                                                      std::array<bool, 3> wanted) {
  bool again = differentiated_again(grad) || differentiated_again(query) ||
               differentiated_again(key) || differentiated_again(value);
  if (!again && query.scalar_type() != kDouble) {
    auto given = [](const Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; };
    return _scaled_dot_product_flash_attention_for_cpu_backward(
        grad, query, key, value, output, logsumexp, 0, is_causal, given(attn_mask), scale,
        given(dropout_mask));
  }
  int64_t heads = query.size(1);
  Tensor k = for_heads(key, heads), v = for_heads(value, heads);
  Attention a(query, k, attn_mask, dropout_mask, is_causal, scale);
  Tensor for_query, for_key, for_value;
  if (wanted[2]) {
    for_value = of_heads(a.dropped(a.weights).transpose(-2, -1).matmul(grad), value.size(1));
  }
  if (wanted[0] || wanted[1]) {
    Tensor weights = a.dropped(grad.matmul(v.transpose(-2, -1)));
    Tensor scores = a.through_softmax(weights) * a.factor;
    if (wanted[0]) for_query = scores.matmul(k);
    if (wanted[1]) for_key = of_heads(scores.transpose(-2, -1).matmul(query), key.size(1));
  }
  return {for_query, for_key, for_value};
}
Tensor attention_forward(const Tensor& query_p, const Tensor& query_t, const Tensor& key_p,
                         const Tensor& key_t, const Tensor& value_p, const Tensor& value_t,
                         const Tensor& attn_mask, const Tensor& dropout_mask, bool is_causal,
                         std::optional<double> scale) {
  int64_t heads = query_p.size(1);
  Tensor k = for_heads(key_p, heads), v = for_heads(value_p, heads);
  Attention a(query_p, k, attn_mask, dropout_mask, is_causal, scale);
  Tensor scores, out;
  if (query_t.defined()) add_to(scores, query_t.matmul(k.transpose(-2, -1)));
  if (key_t.defined()) {
    add_to(scores, query_p.matmul(for_heads(key_t, heads).transpose(-2, -1)));
  }
  if (scores.defined()) out = a.dropped(a.through_softmax(scores * a.factor)).matmul(v);
  if (value_t.defined()) add_to(out, a.dropped(a.weights).matmul(for_heads(value_t, heads)));
  return out;
}

}  // namespace lamella
