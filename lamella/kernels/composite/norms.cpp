// Normalisation by batch, instance and group, and forms of dropout for whole channels and for
// self-normalising networks.
#include <cmath>

#include "lamella/core/checked_size.h"
#include "lamella/dispatch/dispatcher.h"
#include "lamella/kernels/native.h"

namespace lamella::native {

using Parameter = std::optional<Tensor>;

namespace {
bool has(const Parameter& tensor) { return tensor.has_value() && tensor->defined(); }
}  // namespace

Tensor batch_norm(const Tensor& input, const Parameter& weight, const Parameter& bias,
                  const Parameter& running_mean, const Parameter& running_var, bool training,
                  double momentum, double eps, bool cudnn_enabled) {
  if (input.dim() == 1 && input.numel() == 0) return input.clone();
  return std::get<0>(lamella::native_batch_norm(input, weight, bias, running_mean, running_var,
                                                training, momentum, eps));
}

Tensor instance_norm(const Tensor& input, const Parameter& weight, const Parameter& bias,
                     const Parameter& running_mean, const Parameter& running_var,
                     bool use_input_stats, double momentum, double eps, bool cudnn_enabled) {
  LAMELLA_CHECK(use_input_stats || (has(running_mean) && has(running_var)),
                "instance_norm: expected 'running_mean' and 'running_var' where ",
                "'use_input_stats' is false");
  LAMELLA_CHECK(input.dim() >= 2, "instance_norm: expected 'input' to have at least 2 dimensions, ",
                "got ", input.sizes());
  // Each sample's channels become channels of their own.
  int64_t samples = input.size(0), channels = input.size(1);
  Dims shape(input.sizes());
  shape[0] = 1;
  shape[1] = samples * channels;
  auto repeated = [&](const Parameter& parameter) -> Parameter {
    if (!has(parameter)) return parameter;
    return parameter->repeat({samples});
  };
  Parameter mean = repeated(running_mean), var = repeated(running_var);
  Tensor out = lamella::batch_norm(input.reshape(shape), repeated(weight), repeated(bias), mean,
                                   var, use_input_stats, momentum, eps, cudnn_enabled);
  if (use_input_stats && input.numel() > 0) {
    for (auto [running, now] : {std::pair{&running_mean, &mean}, std::pair{&running_var, &var}}) {
      if (!has(*running)) continue;
      Tensor target = (*running)->alias();
      target.copy_((*now)->reshape({samples, channels}).mean(IntArrayRef(0)));
    }
  }
  return out.reshape(input.sizes());
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const Parameter& weight,
                  const Parameter& bias, double eps, bool cudnn_enabled) {
  LAMELLA_CHECK(input.dim() >= 2,
                "group_norm: expected 'input' to have at least 2 dimensions, got ", input.sizes());
  int64_t samples = input.size(0), channels = input.size(1);
  int64_t positions = product(input.sizes().slice(2));
  return std::get<0>(lamella::native_group_norm(input, weight, bias, samples, channels, positions,
                                                num_groups, eps));
}

// ---- Dropout ----

namespace {
// 1 for each element that is kept, and 0 for each dropped one. With `features`, whole channels of a
// sample are kept or dropped.
Tensor decisions(const char* op, const Tensor& input, double p, bool features) {
  if (!features) return lamella::empty_like(input).bernoulli_(1 - p);
  LAMELLA_CHECK(input.dim() >= 2, op, ": expected 'input' to have at least 2 dimensions, got ",
                input.sizes());
  Dims shape(static_cast<size_t>(input.dim()), 1);
  shape[0] = input.size(0);
  shape[1] = input.size(1);
  return input.new_empty(shape).bernoulli_(1 - p);
}

struct Noise {
  Tensor factor, offset;  // the result is input * factor + offset; either may be undefined
  bool nothing = false;   // the result is the input
};

Noise dropout_noise(const char* op, const Tensor& input, double p, bool train, bool features,
                    bool alpha) {
  LAMELLA_CHECK(p >= 0 && p <= 1, op, ": expected 'p' in [0, 1], got ", p);
  Noise noise;
  if (p == 0 || !train || input.numel() == 0) {
    noise.nothing = true;
  } else if (p == 1) {
    noise.factor = lamella::zeros({}, input.options());
  } else if (!alpha) {
    noise.factor = decisions(op, input, p, features).div(1 - p);
  } else {
    // Dropped elements get SELU's limit for -infinity; scale and offset preserve mean and variance.
    // G. Klambauer et al., Self-Normalizing Neural Networks, 2017.
    constexpr double kLowest = -1.7580993408473766;
    double a = 1 / std::sqrt((kLowest * kLowest * p + 1) * (1 - p));
    Tensor kept = decisions(op, input, p, features);
    noise.offset = kept.sub(1).mul(-kLowest * a).add(-kLowest * a * p);
    noise.factor = kept.mul(a);
  }
  return noise;
}
Tensor apply(const Tensor& input, const Noise& noise) {
  if (noise.nothing) return input;
  Tensor out = input.mul(noise.factor);
  return noise.offset.defined() ? out.add(noise.offset) : out;
}
Tensor& apply_(Tensor& self, const Noise& noise) {
  if (noise.nothing) return self;
  self.mul_(noise.factor);
  return noise.offset.defined() ? self.add_(noise.offset) : self;
}
}  // namespace

Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return apply(input, dropout_noise("feature_dropout", input, p, train, true, false));
}
Tensor& feature_dropout_(Tensor& self, double p, bool train) {
  return apply_(self, dropout_noise("feature_dropout_", self, p, train, true, false));
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return apply(input, dropout_noise("alpha_dropout", input, p, train, false, true));
}
Tensor& alpha_dropout_(Tensor& self, double p, bool train) {
  return apply_(self, dropout_noise("alpha_dropout_", self, p, train, false, true));
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return apply(input, dropout_noise("feature_alpha_dropout", input, p, train, true, true));
}
Tensor& feature_alpha_dropout_(Tensor& self, double p, bool train) {
  return apply_(self, dropout_noise("feature_alpha_dropout_", self, p, train, true, true));
}
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  LAMELLA_CHECK(mask.scalar_type() == kBool,
                "native_dropout_backward: expected 'mask' to be bool, got ", mask.scalar_type());
  return grad_output.mul(mask).mul(scale);
}

// Python's sparse tensors define `embedding_sparse_backward` when they are loaded. Without them the
// gradient is dense even if a sparse one is requested; the values are the same.
Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                          int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
  if (sparse) {
    using Backward = Tensor(const Tensor&, const Tensor&, int64_t, int64_t, bool);
    if (auto op = Dispatcher::singleton().findSchema({"lamella::embedding_sparse_backward", ""})) {
      return op->typed<Backward>().call(grad, indices, num_weights, padding_idx,
                                        scale_grad_by_freq);
    }
  }
  return lamella::embedding_dense_backward(grad, indices, num_weights, padding_idx,
                                           scale_grad_by_freq);
}

// ---- Channels into pixels and back ----

namespace {
// `made`, which is contiguous, in the memory format of `self`. A tensor with one channel has
// several formats at once, so contiguous() would leave its strides.
Tensor in_format_of(const Tensor& self, const Tensor& made) {
  MemoryFormat format = self.suggest_memory_format();
  return format == MemoryFormat::Contiguous ? made : made.clone(format);
}
}  // namespace

Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  const char* op = "pixel_shuffle";
  int64_t r = upscale_factor;
  LAMELLA_CHECK(self.dim() >= 3, op, ": expected 'self' to have at least 3 dimensions, got ",
                self.sizes());
  LAMELLA_CHECK(r > 0, op, ": expected 'upscale_factor' to be greater than 0, got ", r);
  int64_t channels = self.size(-3), height = self.size(-2), width = self.size(-1);
  int64_t pixels = (CheckedSize(r, op) * r).value();
  LAMELLA_CHECK(channels % pixels == 0, op, ": expected the channels of 'self' to be divisible by ",
                pixels, ", got ", channels);
  Dims parts(self.sizes().slice(0, self.sizes().size() - 3));
  size_t lead = parts.size();
  Dims shape(parts), order;
  parts.append_all({channels / pixels, r, r, height, width});
  shape.append_all({channels / pixels, (CheckedSize(height, op) * r).value(),
                    (CheckedSize(width, op) * r).value()});
  for (size_t d = 0; d < lead; ++d) order.push_back(static_cast<int64_t>(d));
  for (int64_t d : {0, 3, 1, 4, 2}) order.push_back(static_cast<int64_t>(lead) + d);
  Tensor made = self.reshape(parts).permute(order).clone(MemoryFormat::Contiguous).reshape(shape);
  return in_format_of(self, made);
}
Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor) {
  const char* op = "pixel_unshuffle";
  int64_t r = downscale_factor;
  LAMELLA_CHECK(self.dim() >= 3, op, ": expected 'self' to have at least 3 dimensions, got ",
                self.sizes());
  LAMELLA_CHECK(r > 0, op, ": expected 'downscale_factor' to be greater than 0, got ", r);
  int64_t channels = self.size(-3), height = self.size(-2), width = self.size(-1);
  LAMELLA_CHECK(height % r == 0 && width % r == 0, op,
                ": expected height and width of 'self' to be divisible by ", r, ", got ",
                self.sizes());
  Dims parts(self.sizes().slice(0, self.sizes().size() - 3));
  size_t lead = parts.size();
  Dims shape(parts), order;
  parts.append_all({channels, height / r, r, width / r, r});
  shape.append_all({(CheckedSize(channels, op) * r * r).value(), height / r, width / r});
  for (size_t d = 0; d < lead; ++d) order.push_back(static_cast<int64_t>(d));
  for (int64_t d : {0, 2, 4, 1, 3}) order.push_back(static_cast<int64_t>(lead) + d);
  Tensor made = self.reshape(parts).permute(order).clone(MemoryFormat::Contiguous).reshape(shape);
  return in_format_of(self, made);
}
Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  const char* op = "channel_shuffle";
  LAMELLA_CHECK(self.dim() > 2, op, ": expected 'self' to have more than 2 dimensions, got ",
                self.sizes());
  int64_t channels = self.size(1);
  LAMELLA_CHECK(groups > 0 && channels % groups == 0, op, ": expected 'groups' to divide ",
                channels, " channels, got ", groups);
  Tensor parts = self.reshape({self.size(0), groups, channels / groups, -1});
  return in_format_of(self, parts.permute({0, 2, 1, 3}).contiguous().reshape(self.sizes()));
}

}  // namespace lamella::native
