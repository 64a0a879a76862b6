// Derivatives of normalisation: see Note [The derivative of a norm].
#include "lamella/layers/autograd/formulas/norms.h"

#include <vector>

#include "lamella/layers/autograd/formulas/common.h"

namespace lamella {

namespace {

using DimList = std::vector<int64_t>;

// No dimensions: as it is.
Tensor summed(const Tensor& tensor, const DimList& dims, bool keep) {
  return dims.empty() ? tensor : tensor.sum(IntArrayRef(dims), keep);
}

struct Norm {
  DimList dims;        // that an average goes over
  DimList parameters;  // that a parameter's gradient is summed over
  Tensor normal, rstd;
  Tensor weight;        // in a shape that broadcasts with the input; undefined: 1
  bool centred = true;  // a mean was subtracted
  bool fixed = false;   // the statistics do not come from the input

  // P of Note [The derivative of a norm].
  Tensor project(const Tensor& g) const {
    if (fixed) return g;
    Tensor rest = g - normal * (g * normal).mean(IntArrayRef(dims), true);
    return centred ? rest - g.mean(IntArrayRef(dims), true) : rest;
  }
  Tensor weighted(const Tensor& g) const { return weight.defined() ? g * weight : g; }
};

// Mean and rstd are taken from `input` again, so that they may be differentiated. The eps
// added to the variance is recovered from `rstd`.
void take_statistics(Norm& norm, const Tensor& input, const Tensor& rstd) {
  Tensor centre = norm.centred ? input - input.mean(IntArrayRef(norm.dims), true) : input;
  Tensor var = (centre * centre).mean(IntArrayRef(norm.dims), true);
  Tensor added = rstd.detach().pow(-2) - var.detach();
  norm.rstd = (var + added).rsqrt();
  norm.normal = centre * norm.rstd;
}

Tensor tangent(const Norm& norm, const Tensor& input_t, const Tensor& weight_t,
               const Tensor& bias_t) {
  Tensor out;
  if (input_t.defined()) add_to(out, norm.weighted(norm.rstd * norm.project(input_t)));
  if (weight_t.defined()) add_to(out, norm.normal * weight_t);
  if (bias_t.defined()) add_to(out, bias_t.expand(norm.normal.sizes()));
  return out;
}

// Gradients of weight and bias have a shape that broadcasts with the input.
ThreeGradients double_backward(const Norm& norm, const Tensor& grad_x, const Tensor& grad_weight,
                               const Tensor& grad_bias, const Tensor& dy,
                               std::array<bool, 3> wanted) {
  Tensor for_dy, for_x, for_weight, towards_normal;
  Tensor g = norm.weighted(dy);
  if (grad_x.defined()) {
    Tensor passed = norm.rstd * norm.project(grad_x);
    if (wanted[0]) add_to(for_dy, norm.weighted(passed));
    if (wanted[2]) for_weight = summed(passed * dy, norm.parameters, true);
    if (wanted[1] && !norm.fixed) {
      Tensor both = grad_x * (g * norm.normal).mean(IntArrayRef(norm.dims), true) +
                    g * (grad_x * norm.normal).mean(IntArrayRef(norm.dims), true);
      add_to(towards_normal, -norm.rstd * both);
      add_to(for_x, -(g * passed).mean(IntArrayRef(norm.dims), true) * norm.rstd * norm.normal);
    }
  }
  if (grad_weight.defined()) {
    if (wanted[0]) add_to(for_dy, grad_weight * norm.normal);
    if (wanted[1]) add_to(towards_normal, grad_weight * dy);
  }
  if (grad_bias.defined() && wanted[0]) add_to(for_dy, grad_bias.expand(dy.sizes()));
  if (towards_normal.defined()) add_to(for_x, norm.rstd * norm.project(towards_normal));
  return {for_dy, for_x, for_weight};
}

// Tangents of rstd * P(dy * weight), and of the sums of dy * normal and of dy.
ThreeGradients backward_tangent(const Norm& norm, const Tensor& dy, const Tensor& dy_t,
                                const Tensor& x_t, const Tensor& weight_t,
                                std::array<bool, 3> wanted) {
  auto average = [&](const Tensor& t) { return t.mean(IntArrayRef(norm.dims), true); };
  Tensor for_x, for_weight, for_bias;
  Tensor normal_t = norm.rstd * norm.project(x_t);
  if (wanted[0]) {
    Tensor g = norm.weighted(dy), g_t = norm.weighted(dy_t);
    if (weight_t.defined()) g_t = g_t + dy * weight_t;
    for_x = norm.project(g_t);
    if (!norm.fixed) {
      for_x = for_x - normal_t * average(g * norm.normal) - norm.normal * average(g * normal_t) -
              norm.rstd * average(norm.normal * x_t) * norm.project(g);
    }
    for_x = norm.rstd * for_x;
  }
  if (wanted[1]) {
    for_weight = summed(dy_t * norm.normal + dy * normal_t, norm.parameters, true);
  }
  if (wanted[2]) for_bias = summed(dy_t, norm.parameters, true);
  return {for_x, for_weight, for_bias};
}

// ---- Over the last dimensions ----

Norm layer_norm_of(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                   bool centred) {
  Norm norm;
  int64_t rank = input.dim(), first = rank - static_cast<int64_t>(normalized_shape.size());
  for (int64_t d = 0; d < rank; ++d) (d < first ? norm.parameters : norm.dims).push_back(d);
  norm.weight = weight;
  norm.centred = centred;
  return norm;
}

// ---- Groups: tensors as [sample, group, channel of the group, position] ----

struct Groups {
  int64_t samples, channels, positions, groups;

  Tensor seen(const Tensor& t) const {
    return t.defined() ? t.reshape({samples, groups, channels / groups, positions}) : t;
  }
  Tensor parameter(const Tensor& t) const {
    return t.defined() ? t.reshape({1, groups, channels / groups, 1}) : t;
  }
  Tensor statistic(const Tensor& t) const { return t.reshape({samples, groups, 1, 1}); }
  Norm norm(const Tensor& weight) const {
    Norm n;
    n.dims = {2, 3};
    n.parameters = {0, 3};
    n.weight = parameter(weight);
    return n;
  }
};

// ---- Channels ----

// Reshapes a value for each channel to broadcast with a tensor of `rank` dimensions.
Tensor per_channel(const Tensor& t, int64_t rank) {
  if (!t.defined()) return t;
  DimList shape(static_cast<size_t>(rank), 1);
  shape[1] = t.numel();
  return t.reshape(shape);
}
Norm batch_norm_of(const Tensor& input, const Tensor& weight, bool training) {
  Norm norm;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) norm.dims.push_back(d);
  }
  norm.parameters = norm.dims;
  norm.weight = per_channel(weight, input.dim());
  norm.fixed = !training;
  return norm;
}
void take_statistics(Norm& norm, const Tensor& input, const Tensor& rstd,
                     const Tensor& running_mean, const Tensor& running_var, double eps) {
  int64_t rank = input.dim();
  if (!norm.fixed) return take_statistics(norm, input, per_channel(rstd, rank));
  norm.rstd = per_channel((running_var + eps).rsqrt(), rank);
  norm.normal = (input - per_channel(running_mean, rank)) * norm.rstd;
}

}  // namespace

Tensor layer_norm_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                          const Tensor& weight_t, const Tensor& bias_t, const Tensor& mean,
                          const Tensor& rstd, IntArrayRef normalized_shape) {
  Norm norm = layer_norm_of(input_p, normalized_shape, weight_p, mean.defined());
  take_statistics(norm, input_p, rstd);
  return tangent(norm, input_t, weight_t, bias_t);
}
ThreeGradients layer_norm_double_backward(TensorList grads, const Tensor& grad_out,
                                          const Tensor& input, IntArrayRef normalized_shape,
                                          const Tensor& mean, const Tensor& rstd,
                                          const Tensor& weight, std::array<bool, 3> wanted) {
  Norm norm = layer_norm_of(input, normalized_shape, weight, mean.defined());
  take_statistics(norm, input, rstd);
  auto [dy, x, w] = double_backward(norm, grads[0], grads[1],
                                    grads.size() > 2 ? grads[2] : Tensor(), grad_out, wanted);
  return {dy, x, w.defined() ? w.reshape(normalized_shape) : w};
}
ThreeGradients layer_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                           const Tensor& input_p, const Tensor& input_t,
                                           IntArrayRef normalized_shape, const Tensor& mean,
                                           const Tensor& rstd, const Tensor& weight_p,
                                           const Tensor& weight_t, std::array<bool, 3> wanted) {
  Norm norm = layer_norm_of(input_p, normalized_shape, weight_p, mean.defined());
  take_statistics(norm, input_p, rstd);
  auto [x, w, b] = backward_tangent(norm, grad_p, grad_t, input_t, weight_t, wanted);
  auto shaped = [&](const Tensor& t) { return t.defined() ? t.reshape(normalized_shape) : t; };
  return {x, shaped(w), shaped(b)};
}
std::tuple<Tensor, Tensor> rms_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                                     const Tensor& input_p, const Tensor& input_t,
                                                     IntArrayRef normalized_shape,
                                                     const Tensor& rstd, const Tensor& weight_p,
                                                     const Tensor& weight_t,
                                                     std::array<bool, 2> wanted) {
  auto [x, w, b] =
      layer_norm_backward_forward(grad_p, grad_t, input_p, input_t, normalized_shape, Tensor(),
                                  rstd, weight_p, weight_t, {wanted[0], wanted[1], false});
  return {x, w};
}

Tensor group_norm_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                          const Tensor& weight_t, const Tensor& bias_t, const Tensor& mean,
                          const Tensor& rstd, int64_t samples, int64_t channels, int64_t positions,
                          int64_t groups) {
  Groups as{samples, channels, positions, groups};
  Norm norm = as.norm(weight_p);
  take_statistics(norm, as.seen(input_p), as.statistic(rstd));
  return tangent(norm, as.seen(input_t), as.parameter(weight_t), as.parameter(bias_t))
      .reshape(input_p.sizes());
}
Tensor group_mean_forward(const Tensor& input_t, const Tensor& mean, int64_t samples,
                          int64_t channels, int64_t positions, int64_t groups) {
  Groups as{samples, channels, positions, groups};
  return as.seen(input_t).mean({2, 3}).to(mean.scalar_type());
}
Tensor group_rstd_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& mean,
                          const Tensor& rstd, int64_t samples, int64_t channels, int64_t positions,
                          int64_t groups) {
  Groups as{samples, channels, positions, groups};
  Tensor centred = as.seen(input_p) - as.statistic(mean);
  Tensor moved = (centred * as.seen(input_t)).mean({2, 3});
  return (-rstd.pow(3) * moved).to(rstd.scalar_type());
}
ThreeGradients group_norm_backward(TensorList grads, const Tensor& input, const Tensor& mean,
                                   const Tensor& rstd, const Tensor& weight, int64_t samples,
                                   int64_t channels, int64_t positions, int64_t groups,
                                   std::array<bool, 3> wanted) {
  ThreeGradients result;
  if (grads[0].defined()) {
    result = lamella::native_group_norm_backward(
        grads[0], input, mean.detach(), rstd.detach(),
        weight.defined() ? std::optional<Tensor>(weight) : std::nullopt, samples, channels,
        positions, groups, wanted);
  }
  if (!wanted[0] || !(grads[1].defined() || grads[2].defined())) return result;
  Groups as{samples, channels, positions, groups};
  auto count = static_cast<double>(channels / groups * positions);
  Tensor moved;
  if (grads[1].defined()) add_to(moved, (as.statistic(grads[1]) / count).expand_as(as.seen(input)));
  if (grads[2].defined()) {
    Tensor slope = as.statistic(grads[2] * -rstd.pow(3) / count);
    add_to(moved, slope * (as.seen(input) - as.statistic(mean)));
  }
  add_to(std::get<0>(result), moved.to(input.scalar_type()).reshape(input.sizes()));
  return result;
}
ThreeGradients group_norm_double_backward(TensorList grads, const Tensor& grad_out,
                                          const Tensor& input, const Tensor& mean,
                                          const Tensor& rstd, const Tensor& weight, int64_t samples,
                                          int64_t channels, int64_t positions, int64_t groups,
                                          std::array<bool, 3> wanted) {
  Groups as{samples, channels, positions, groups};
  Norm norm = as.norm(weight);
  take_statistics(norm, as.seen(input), as.statistic(rstd));
  auto [dy, x, w] = double_backward(norm, as.seen(grads[0]), as.parameter(grads[1]),
                                    as.parameter(grads[2]), as.seen(grad_out), wanted);
  auto back = [&](const Tensor& t) { return t.defined() ? t.reshape(input.sizes()) : t; };
  return {back(dy), back(x), w.defined() ? w.reshape({channels}) : w};
}
ThreeGradients group_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                           const Tensor& input_p, const Tensor& input_t,
                                           const Tensor& rstd, const Tensor& weight_p,
                                           const Tensor& weight_t, int64_t samples,
                                           int64_t channels, int64_t positions, int64_t groups,
                                           std::array<bool, 3> wanted) {
  Groups as{samples, channels, positions, groups};
  Norm norm = as.norm(weight_p);
  take_statistics(norm, as.seen(input_p), as.statistic(rstd));
  auto [x, w, b] = backward_tangent(norm, as.seen(grad_p), as.seen(grad_t), as.seen(input_t),
                                    as.parameter(weight_t), wanted);
  auto shaped = [&](const Tensor& t) { return t.defined() ? t.reshape({channels}) : t; };
  return {x.defined() ? x.reshape(input_p.sizes()) : x, shaped(w), shaped(b)};
}

Tensor batch_norm_forward(const Tensor& input_p, const Tensor& input_t, const Tensor& weight_p,
                          const Tensor& weight_t, const Tensor& bias_t, const Tensor& running_mean,
                          const Tensor& running_var, const Tensor& mean, const Tensor& rstd,
                          bool training, double eps) {
  int64_t rank = input_p.dim();
  Norm norm = batch_norm_of(input_p, weight_p, training);
  take_statistics(norm, input_p, rstd, running_mean, running_var, eps);
  return tangent(norm, input_t, per_channel(weight_t, rank), per_channel(bias_t, rank));
}
ThreeGradients batch_norm_double_backward(TensorList grads, const Tensor& grad_out,
                                          const Tensor& input, const Tensor& weight,
                                          const Tensor& running_mean, const Tensor& running_var,
                                          const Tensor& mean, const Tensor& rstd, bool training,
                                          double eps, std::array<bool, 3> wanted) {
  int64_t rank = input.dim();
  Norm norm = batch_norm_of(input, weight, training);
  take_statistics(norm, input, rstd, running_mean, running_var, eps);
  auto [dy, x, w] = double_backward(norm, grads[0], per_channel(grads[1], rank),
                                    per_channel(grads[2], rank), grad_out, wanted);
  return {dy, x, w.defined() ? w.reshape({w.numel()}) : w};
}
ThreeGradients batch_norm_backward_forward(const Tensor& grad_p, const Tensor& grad_t,
                                           const Tensor& input_p, const Tensor& input_t,
                                           const Tensor& weight_p, const Tensor& weight_t,
                                           const Tensor& running_mean, const Tensor& running_var,
                                           const Tensor& rstd, bool training, double eps,
                                           std::array<bool, 3> wanted) {
  int64_t rank = input_p.dim();
  Norm norm = batch_norm_of(input_p, weight_p, training);
  take_statistics(norm, input_p, rstd, running_mean, running_var, eps);
  auto [x, w, b] =
      backward_tangent(norm, grad_p, grad_t, input_t, per_channel(weight_t, rank), wanted);
  auto shaped = [](const Tensor& t) { return t.defined() ? t.reshape({t.numel()}) : t; };
  return {x, shaped(w), shaped(b)};
}

}  // namespace lamella
