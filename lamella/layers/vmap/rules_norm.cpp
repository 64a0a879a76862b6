// Rules for normalisation by batch, layer and group, and their backwards.
#include "lamella/abi/autograd.h"
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

// [batch * C, ...] -> [batch, C, ...]. Statistics that were not computed have no elements and are
// expanded instead.
Tensor part_first(const BatchedCall& call, const Tensor& x) {
  int64_t batch = call.batch_size();
  if (x.numel() == 0 && batch != 0) return x.expand(with_batch(call, x.sizes()));
  return x.unflatten(0, {batch, batch == 0 ? x.size(0) : x.size(0) / batch});
}

// Throws unless a parameter has this shape in each example: joined with the batch or applied
// afterwards it would broadcast.
void check_parameter(const char* op, const char* name, const In& x, IntArrayRef shape) {
  LAMELLA_CHECK(!x.defined() || x.sizes() == shape, op, ": expected '", name, "' to be of shape ",
                shape, ", got ", x.sizes());
}

// ---- Batch norm: the batch joins the channels -------------------------------------------------

void check_channels(const BatchedCall& call, const char* name, const In& x) {
  LAMELLA_CHECK(x.rank() >= 2, call.plan().name, ": expected '", name,
                "' to have at least 2 dimensions, got ", x.sizes());
}
Tensor join_channels(const BatchedCall& call, const In& x) {
  return front(call, x).transpose(0, 1).flatten(1, 2);
}
Tensor part_channels(const BatchedCall& call, const Tensor& x) {
  int64_t batch = call.batch_size();
  return x.unflatten(1, {batch, batch == 0 ? x.size(1) : x.size(1) / batch}).transpose(0, 1);
}
Tensor join_parameter(const BatchedCall& call, const In& x) {
  return x.defined() ? front(call, x).reshape({-1}) : Tensor();
}

Three batch_norm(BatchedCall& call, In input, In weight, In bias, In running_mean, In running_var,
                 bool training, double momentum, double eps) {
  check_channels(call, "input", input);
  const IntArrayRef channels = input.sizes().slice(1, 1);
  check_parameter("batch_norm", "weight", weight, channels);
  check_parameter("batch_norm", "bias", bias, channels);
  check_parameter("batch_norm", "running_mean", running_mean, channels);
  check_parameter("batch_norm", "running_var", running_var, channels);
  if (training) {
    for (const In* running : {&running_mean, &running_var}) {
      LAMELLA_CHECK(!running->defined() || running->batched, call.plan().name, ": expected '",
                    running == &running_mean ? "running_mean" : "running_var",
                    "', which is written in training, to be batched under vmap, because each "
                    "example has statistics of its own; use layers without running statistics");
    }
  }
  Tensor mean = join_parameter(call, running_mean), var = join_parameter(call, running_var);
  auto [out, save_mean, save_invstd] = lamella::native_batch_norm(
      join_channels(call, input), or_none(join_parameter(call, weight)),
      or_none(join_parameter(call, bias)), or_none(mean), or_none(var), training, momentum, eps);
  if (training && mean.defined() && !mean.is_alias_of(running_mean.value)) {
    running_mean.value.copy_(mean.view(running_mean.value.sizes()));
  }
  if (training && var.defined() && !var.is_alias_of(running_var.value)) {
    running_var.value.copy_(var.view(running_var.value.sizes()));
  }
  return {part_channels(call, out), part_first(call, save_mean), part_first(call, save_invstd)};
}
Three batch_norm_no_stats(BatchedCall& call, In input, In weight, In bias, bool training,
                          double momentum, double eps) {
  return batch_norm(call, input, weight, bias, {}, {}, training, momentum, eps);
}
Three batch_norm_no_training(BatchedCall& call, In input, In weight, In bias, In running_mean,
                             In running_var, double momentum, double eps) {
  return batch_norm(call, input, weight, bias, running_mean, running_var, false, momentum, eps);
}
Three batch_norm_backward(BatchedCall& call, In grad_out, In input, In weight, In running_mean,
                          In running_var, In save_mean, In save_invstd, bool train, double eps,
                          std::array<bool, 3> output_mask) {
  check_channels(call, "input", input);
  check_channels(call, "grad_out", grad_out);
  auto [gx, gw, gb] = lamella::native_batch_norm_backward(
      join_channels(call, grad_out), join_channels(call, input),
      or_none(join_parameter(call, weight)), or_none(join_parameter(call, running_mean)),
      or_none(join_parameter(call, running_var)), or_none(join_parameter(call, save_mean)),
      or_none(join_parameter(call, save_invstd)), train, eps, output_mask);
  return {gx.defined() ? part_channels(call, gx) : gx, gw.defined() ? part_first(call, gw) : gw,
          gb.defined() ? part_first(call, gb) : gb};
}

// ---- Layer norm: batched weights and biases are applied afterwards ----------------------------

void check_rank(const char* op, const In& input, IntArrayRef normalized_shape) {
  LAMELLA_CHECK(input.rank() >= static_cast<int64_t>(normalized_shape.size()), op,
                ": expected 'input' to end with the shape ", normalized_shape, ", got ",
                input.sizes());
}
Three layer_norm(BatchedCall& call, In input, IntArrayRef normalized_shape, In weight, In bias,
                 double eps) {
  check_rank("native_layer_norm", input, normalized_shape);
  check_parameter("layer_norm", "weight", weight, normalized_shape);
  check_parameter("layer_norm", "bias", bias, normalized_shape);
  bool apart = weight.batched || bias.batched;
  std::optional<Tensor> none;
  auto [out, mean, rstd] = lamella::native_layer_norm(front(call, input), normalized_shape,
                                                      apart ? none : or_none(weight.value),
                                                      apart ? none : or_none(bias.value), eps);
  if (apart && weight.defined()) out = out.mul(aligned(weight, input.rank()));
  if (apart && bias.defined()) out = out.add(aligned(bias, input.rank()));
  return {out, mean, rstd};
}
std::tuple<Tensor, Tensor> rms_norm(BatchedCall& call, In input, IntArrayRef normalized_shape,
                                    In weight, std::optional<double> eps) {
  check_rank("_fused_rms_norm", input, normalized_shape);
  check_parameter("rms_norm", "weight", weight, normalized_shape);
  auto [out, rstd] =
      lamella::_fused_rms_norm(front(call, input), normalized_shape,
                               weight.batched ? std::nullopt : or_none(weight.value), eps);
  if (weight.batched) out = out.mul(aligned(weight, input.rank()));
  return {out, rstd};
}

// The normalised dimensions (inner), and those in front of them (outer).
struct Norm {
  Sizes inner, outer;
  Norm(const Tensor& input, IntArrayRef normalized_shape) {
    auto split = input.dim() - static_cast<int64_t>(normalized_shape.size());
    for (int64_t d = 0; d < input.dim(); ++d) (d < split ? outer : inner).push_back(d);
  }
  Tensor mean(const Tensor& x) const { return x.mean(IntArrayRef(inner), true); }
  Tensor over_samples(const Tensor& x) const {
    return outer.empty() ? x : x.sum(IntArrayRef(outer));
  }
};

// The saved moments have no autograd history. If the input is differentiated, they must be computed
// from it again.
bool is_differentiated(const Tensor& input) {
  constexpr uint32_t either = LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_TANGENT;
  return (input.impl()->flags & either) != 0;
}
// (square + eps)^-1/2, with the eps recovered from `saved`.
Tensor reciprocal_root(const Tensor& square, const Tensor& saved) {
  constexpr uint32_t both = LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_NO_FORWARD;
  struct Plain {
    uint32_t before = lamella_set_modes(both, both);
    ~Plain() { lamella_set_modes(both, before); }
  };
  Tensor eps;
  {
    Plain plain;
    eps = saved.pow(-2).sub(square);
  }
  return square.add(eps).rsqrt();
}

// With h = (x - mean) * rstd: dx = rstd * (g - mean(g) - h * mean(g * h)), g the gradient of h.
Three layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape,
                          const Tensor& saved_mean, const Tensor& saved_rstd,
                          const std::optional<Tensor>& weight, const std::optional<Tensor>&,
                          std::array<bool, 3> output_mask) {
  Norm norm(input, normalized_shape);
  bool again = is_differentiated(input);
  Tensor centered = input.sub(again ? norm.mean(input) : saved_mean);
  Tensor rstd = again ? reciprocal_root(norm.mean(centered.mul(centered)), saved_rstd) : saved_rstd;
  Tensor h = centered.mul(rstd);
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    Tensor g = weight ? grad_out.mul(*weight) : grad_out;
    grad_input = g.sub(norm.mean(g)).sub(h.mul(norm.mean(g.mul(h)))).mul(rstd);
  }
  if (output_mask[1] && weight) grad_weight = norm.over_samples(grad_out.mul(h));
  if (output_mask[2]) grad_bias = norm.over_samples(grad_out);
  return {grad_input, grad_weight, grad_bias};
}
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                             IntArrayRef normalized_shape, const Tensor& saved,
                                             const std::optional<Tensor>& weight,
                                             std::array<bool, 2> output_mask) {
  Norm norm(input, normalized_shape);
  Tensor rstd =
      is_differentiated(input) ? reciprocal_root(norm.mean(input.mul(input)), saved) : saved;
  Tensor h = input.mul(rstd);
  Tensor grad_input, grad_weight;
  if (output_mask[0]) {
    Tensor g = weight ? grad_out.mul(*weight) : grad_out;
    grad_input = g.sub(h.mul(norm.mean(g.mul(h)))).mul(rstd);
  }
  if (output_mask[1] && weight) grad_weight = norm.over_samples(grad_out.mul(h));
  return {grad_input, grad_weight};
}

// ---- Group norm: the batch joins the samples --------------------------------------------------

// Reshapes [batch, C] so that it broadcasts with [batch, N, C, ...].
Tensor beside_channels(const BatchedCall& call, const In& parameter, int64_t dims) {
  Sizes shape(static_cast<size_t>(dims), 1);
  shape[2] = parameter.size(0);
  if (parameter.batched) shape[0] = call.batch_size();
  return parameter.value.reshape(shape);
}
Three group_norm(BatchedCall& call, In input, In weight, In bias, int64_t N, int64_t C, int64_t HxW,
                 int64_t group, double eps) {
  check_parameter("group_norm", "weight", weight, C);
  check_parameter("group_norm", "bias", bias, C);
  bool apart = weight.batched || bias.batched;
  std::optional<Tensor> none;
  Tensor x = front(call, input);
  auto [joined, mean, rstd] = lamella::native_group_norm(
      x.reshape({call.batch_size() * N, C, HxW}).contiguous(), apart ? none : or_none(weight.value),
      apart ? none : or_none(bias.value), call.batch_size() * N, C, HxW, group, eps);
  Tensor out = joined.view(x.sizes());
  if (apart && weight.defined()) out = out.mul(beside_channels(call, weight, out.dim()));
  if (apart && bias.defined()) out = out.add(beside_channels(call, bias, out.dim()));
  return {out, part_first(call, mean), part_first(call, rstd)};
}
Three group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean,
                          const Tensor& rstd, const std::optional<Tensor>& weight, int64_t N,
                          int64_t C, int64_t HxW, int64_t group, std::array<bool, 3> output_mask) {
  Tensor x = input.reshape({N, group, C / std::max<int64_t>(group, 1) * HxW});
  Tensor grad = grad_out.reshape({N, C, HxW});
  bool again = is_differentiated(input);
  Tensor centered = x.sub(again ? x.mean(2, true) : mean.reshape({N, group, 1}));
  Tensor scale = rstd.reshape({N, group, 1});
  if (again) scale = reciprocal_root(centered.mul(centered).mean(2, true), scale);
  Tensor h = centered.mul(scale);
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    Tensor g = (weight ? grad.mul(weight->reshape({C, 1})) : grad).reshape(x.sizes());
    grad_input = g.sub(g.mean(2, true)).sub(h.mul(g.mul(h).mean(2, true))).mul(scale);
    grad_input = grad_input.reshape(input.sizes());
  }
  if (output_mask[1]) grad_weight = grad.mul(h.reshape({N, C, HxW})).sum({0, 2});
  if (output_mask[2]) grad_bias = grad.sum({0, 2});
  return {grad_input, grad_weight, grad_bias};
}

constexpr NamedRule kRules[] = {
    {"batch_norm", &typed<&batch_norm>},
    {"batch_norm_no_stats", &typed<&batch_norm_no_stats>},
    {"batch_norm_no_training", &typed<&batch_norm_no_training>},
    {"batch_norm_backward", &typed<&batch_norm_backward>},
    {"layer_norm", &typed<&layer_norm>},
    {"layer_norm_backward", &decomposed<&layer_norm_backward>},
    {"rms_norm", &typed<&rms_norm>},
    {"rms_norm_backward", &decomposed<&rms_norm_backward>},
    {"group_norm", &typed<&group_norm>},
    {"group_norm_backward", &decomposed<&group_norm_backward>},
};

}  // namespace

NamedRules norm_rules() { return kRules; }

}  // namespace lamella::vmap
