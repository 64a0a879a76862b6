// Batch normalisation and its backward.
#include <cmath>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/channel_norm.h"
#include "lamella/kernels/device_lines.h"

namespace lamella::native {

namespace {
using Parameter = std::optional<Tensor>;
bool has(const Parameter& tensor) { return tensor.has_value() && tensor->defined(); }

int64_t check_input(const char* op, const Tensor& input) {
  LAMELLA_CHECK(input.dim() >= 2, op, ": expected 'input' to have at least 2 dimensions, got ",
                input.sizes());
  LAMELLA_CHECK_NOT_IMPLEMENTED(input.is_floating_point() && !is_float8(input.scalar_type()), op,
                                ": expected 'input' to be floating point, got ",
                                input.scalar_type());
  return input.sizes()[1];
}
void check_parameter(const char* op, const char* name, const Parameter& parameter,
                     int64_t channels) {
  LAMELLA_CHECK(!has(parameter) || (parameter->dim() == 1 && parameter->numel() == channels), op,
                ": expected '", name, "' to be of shape [", channels, "], got ",
                parameter->sizes());
}
void check_floating(const char* op, const char* name, const Parameter& parameter) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(!has(parameter) || parameter->is_floating_point(), op,
                                ": expected '", name, "' to be floating point, got ",
                                parameter->scalar_type());
}
// The dtype of the saved statistics and of the parameters' gradients.
ScalarType parameter_type(const Tensor& input, std::initializer_list<const Parameter*> parameters) {
  for (const Parameter* parameter : parameters) {
    if (has(*parameter)) return (*parameter)->scalar_type();
  }
  return input.scalar_type();
}

// The memory format in which the input needs no copy, and its planes. If channels are innermost,
// planes have one element.
struct Layout {
  MemoryFormat format = MemoryFormat::Contiguous;
  Planes planes;

  explicit Layout(const Tensor& input) {
    int64_t channels = input.sizes()[1];
    for (MemoryFormat last : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d}) {
      if (!input.is_contiguous() && input.is_contiguous(last)) format = last;
    }
    int64_t positions = channels == 0 ? 0 : input.numel() / channels;
    int64_t inner = product(input.sizes().slice(2));
    bool innermost = format != MemoryFormat::Contiguous;
    planes = {wide_type(input.scalar_type()), innermost ? positions : input.sizes()[0], channels,
              innermost ? 1 : inner};
  }
  Tensor arranged(const Tensor& tensor) const { return tensor.to(planes.dtype).contiguous(format); }
  Tensor made_like(const Tensor& input) const {
    return new_strided(input.sizes(), strides_in_format(input.sizes(), format), planes.dtype,
                       input.device());
  }
};

// running = (1 - momentum) * running + momentum * factor * now. The version of `running` stays the
// same, because the backward of an earlier call in training does not read the running statistics.
void update_running(const Parameter& running, const Tensor& now, double momentum, double factor) {
  if (!has(running)) return;
  visit_floating(running->scalar_type(), "batch_norm", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    auto* to = static_cast<T*>(running->data_ptr());
    int64_t step = running->strides()[0];
    visit_wide(now.scalar_type(), [&](auto wide) {
      auto* from = static_cast<const type_of<decltype(wide)>*>(now.const_data_ptr());
      C kept = static_cast<C>(1 - momentum), taken = static_cast<C>(momentum);
      for (int64_t c = 0; c < now.numel(); ++c) {
        C value = static_cast<C>(static_cast<double>(from[c]) * factor);
        to[c * step] = static_cast<T>(kept * static_cast<C>(to[c * step]) + taken * value);
      }
    });
  });
}

// ---- On other devices ----

Tensor in_type(const Parameter& parameter, ScalarType dtype) {
  return has(parameter) ? parameter->to(dtype).contiguous() : Tensor();
}
Tensor result_like(const Tensor& input, const Layout& layout) {
  return new_strided(input.sizes(), strides_in_format(input.sizes(), layout.format),
                     input.scalar_type(), input.device());
}

std::tuple<Tensor, Tensor, Tensor> normalise_on_device(
    const char* op, const Tensor& input, const Parameter& weight, const Parameter& bias,
    const Parameter& running_mean, const Parameter& running_var, bool training, double momentum,
    double eps, ScalarType stored) {
  const DeviceLines& lines = device_lines(op, input.device().type());
  Layout layout(input);
  const Planes& p = layout.planes;
  Tensor x = input.contiguous(layout.format), out = result_like(input, layout);
  Tensor invstd = new_tensor({p.channels}, p.dtype, input.device()), mean, var;
  auto statistics = [&](const Tensor& now_mean, const Tensor& now_var, double factor) {
    require_on_device(
        lines.batch_statistics(mean, var, invstd, now_mean, now_var, eps, momentum, factor), op,
        input);
  };
  if (!training) {
    mean = in_type(running_mean, p.dtype);
    var = in_type(running_var, p.dtype);
    statistics(Tensor(), Tensor(), 1);
  } else if (input.numel() == 0) {
    mean = lamella::zeros({p.channels}, TensorOptions(p.dtype).device(input.device()));
    invstd.fill_(1 / std::sqrt(eps));
  } else {
    mean = new_tensor({p.channels}, p.dtype, input.device());
    var = new_tensor({p.channels}, p.dtype, input.device());
    const double parameters[8] = {};  // no correction, no root
    require_on_device(
        lines.reduce("var", input.scalar_type(), x, ~uint64_t{2}, var, parameters, mean), op,
        input);
    const auto count = static_cast<double>(p.outer * p.inner);
    statistics(running_mean.value_or(Tensor()), running_var.value_or(Tensor()),
               count / (count - 1));
  }
  require_on_device(lines.channel_norm(x, out, mean, invstd, in_type(weight, p.dtype),
                                       in_type(bias, p.dtype), p.inner),
                    op, input);
  if (!training) {
    mean = new_tensor({0}, stored, input.device());
    return {out, mean, new_tensor({0}, stored, input.device())};
  }
  return {out, narrowed(mean, stored), narrowed(invstd, stored)};
}

std::tuple<Tensor, Tensor, Tensor> backward_on_device(const char* op, const Tensor& grad_out,
                                                      const Tensor& input, const Parameter& weight,
                                                      const Parameter& given_mean,
                                                      const Parameter& given_spread, bool train,
                                                      double eps, ScalarType stored,
                                                      std::array<bool, 3> wanted) {
  const DeviceLines& lines = device_lines(op, input.device().type());
  Layout layout(input);
  const Planes& p = layout.planes;
  Tensor x = input.contiguous(layout.format), dy = grad_out.contiguous(layout.format);
  Tensor mean = in_type(given_mean, p.dtype), invstd = in_type(given_spread, p.dtype);
  if (!train) invstd = invstd.add(eps).rsqrt();
  Tensor sums, dx, dw, db;
  if (train || wanted[1] || wanted[2]) {
    sums = lines.norm_sums(dy, x, mean, invstd, p.outer, p.channels, p.inner, 0, 1);
  }
  if (wanted[0]) {
    dx = result_like(input, layout);
    require_on_device(lines.channel_norm_backward(dy, x, mean, invstd, in_type(weight, p.dtype),
                                                  train ? sums : Tensor(), dx, p.inner),
                      op, input);
  }
  if (wanted[1]) dw = new_tensor({p.channels}, stored, input.device()).copy_(sums.select(0, 0));
  if (wanted[2]) db = new_tensor({p.channels}, stored, input.device()).copy_(sums.select(0, 1));
  return {dx, dw, db};
}

std::tuple<Tensor, Tensor, Tensor> normalise(const char* op, const Tensor& input,
                                             const Parameter& weight, const Parameter& bias,
                                             const Parameter& running_mean,
                                             const Parameter& running_var, bool training,
                                             double momentum, double eps) {
  int64_t channels = check_input(op, input);
  check_parameter(op, "weight", weight, channels);
  check_parameter(op, "bias", bias, channels);
  check_parameter(op, "running_mean", running_mean, channels);
  check_parameter(op, "running_var", running_var, channels);
  check_floating(op, "running_mean", running_mean);
  check_floating(op, "running_var", running_var);
  LAMELLA_CHECK_VALUE(has(running_mean) == has(running_var), op,
                      ": expected both 'running_mean' and 'running_var' or neither, got only one");
  LAMELLA_CHECK(training || (has(running_mean) && has(running_var)), op,
                ": expected 'running_mean' and 'running_var' outside of training");
  ScalarType dtype = input.scalar_type();
  ScalarType stored = parameter_type(input, {&weight, &bias, &running_mean, &running_var});
  Layout layout(input);
  const int64_t saved = training ? channels : 0;
  if (input.is_meta()) {
    return {
        new_strided(input.sizes(), strides_in_format(input.sizes(), layout.format), dtype, kMeta),
        new_tensor({saved}, stored, kMeta), new_tensor({saved}, stored, kMeta)};
  }
  if (input.device() != kCPU) {
    return normalise_on_device(op, input, weight, bias, running_mean, running_var, training,
                               momentum, eps, stored);
  }
  const Planes& p = layout.planes;
  Tensor x = layout.arranged(input), out = layout.made_like(input);
  PerChannel w(weight, channels, p.dtype, 1), shift(bias, channels, p.dtype, 0);
  PerChannel scale(channels, p.dtype), offset(channels, p.dtype);
  Tensor mean, var;
  if (training) {
    // Without elements the statistics are 0 and the running ones stay.
    mean = lamella::zeros({channels}, TensorOptions(p.dtype));
    var = lamella::zeros({channels}, TensorOptions(p.dtype));
    int64_t count = p.outer * p.inner;
    if (count > 0) channel_moments(p, x, mean, var);
    if (count > 0 && is_out_of_range(var, eps)) {
      if (Rescaled r(input, eps); r.numbers.defined()) {
        const bool scaled = r.scale != 1;
        auto [y, m, inverse] = normalise(
            op, r.numbers, in_double(weight), in_double(bias), scaled ? std::nullopt : running_mean,
            scaled ? std::nullopt : running_var, true, momentum, r.eps);
        if (scaled) {
          Tensor spread = inverse.pow(-2).sub(r.eps);
          m = m.div(r.scale);
          inverse = inverse.mul(r.scale);
          update_running(running_mean, m, momentum, 1);
          update_running(running_var, spread.div(r.scale).div(r.scale), momentum,
                         static_cast<double>(count) / static_cast<double>(count - 1));
        }
        return {narrowed(y, dtype), narrowed(m, stored), narrowed(inverse, stored)};
      }
    }
    if (count > 0) {
      update_running(running_mean, mean, momentum, 1);
      update_running(running_var, var, momentum,
                     static_cast<double>(count) / static_cast<double>(count - 1));
    }
  } else {
    mean = running_mean->to(p.dtype).contiguous();
    var = running_var->to(p.dtype).contiguous();
  }
  Tensor invstd = new_tensor({channels}, p.dtype, kCPU);
  visit_wide(p.dtype, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    auto* m = static_cast<const T*>(mean.const_data_ptr());
    auto* v = static_cast<const T*>(var.const_data_ptr());
    auto* inverse = static_cast<T*>(invstd.data_ptr());
    for (int64_t c = 0; c < channels; ++c) {
      inverse[c] = static_cast<T>(1 / std::sqrt(static_cast<double>(v[c]) + eps));
      scale.as<T>()[c] = inverse[c] * w.as<T>()[c];
      offset.as<T>()[c] = shift.as<T>()[c] - m[c] * scale.as<T>()[c];
    }
  });
  channel_affine(
      p, {x.const_data_ptr(), nullptr, out.data_ptr(), nullptr, scale.data(), offset.data()});
  if (p.dtype != dtype) out = out.to(dtype);
  if (!training) {
    return {out, new_tensor({0}, stored, kCPU), new_tensor({0}, stored, kCPU)};
  }
  return {out, mean.to(stored), invstd.to(stored)};
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Parameter& weight,
                                                     const Parameter& bias,
                                                     const Parameter& running_mean,
                                                     const Parameter& running_var, bool training,
                                                     double momentum, double eps) {
  return normalise("batch_norm", input, weight, bias, running_mean, running_var, training, momentum,
                   eps);
}
std::tuple<Tensor, Tensor, Tensor> _native_batch_norm_legit(
    const Tensor& input, const Parameter& weight, const Parameter& bias, Tensor& running_mean,
    Tensor& running_var, bool training, double momentum, double eps) {
  return normalise("batch_norm", input, weight, bias, running_mean, running_var, training, momentum,
                   eps);
}
std::tuple<Tensor, Tensor, Tensor> _native_batch_norm_legit(const Tensor& input,
                                                            const Parameter& weight,
                                                            const Parameter& bias, bool training,
                                                            double momentum, double eps) {
  return normalise("batch_norm", input, weight, bias, std::nullopt, std::nullopt, training,
                   momentum, eps);
}
std::tuple<Tensor, Tensor, Tensor> _native_batch_norm_legit_no_training(
    const Tensor& input, const Parameter& weight, const Parameter& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  return normalise("batch_norm", input, weight, bias, running_mean, running_var, false, momentum,
                   eps);
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(
    const Tensor& grad_out, const Tensor& input, const Parameter& weight,
    const Parameter& running_mean, const Parameter& running_var, const Parameter& save_mean,
    const Parameter& save_invstd, bool train, double eps, std::array<bool, 3> output_mask) {
  const char* op = "native_batch_norm_backward";
  int64_t channels = check_input(op, input);
  LAMELLA_CHECK(grad_out.sizes().equals(input.sizes()), op, ": expected 'grad_out' to be of shape ",
                input.sizes(), ", got ", grad_out.sizes());
  check_parameter(op, "weight", weight, channels);
  check_parameter(op, train ? "save_mean" : "running_mean", train ? save_mean : running_mean,
                  channels);
  check_parameter(op, train ? "save_invstd" : "running_var", train ? save_invstd : running_var,
                  channels);
  LAMELLA_CHECK(train ? has(save_mean) && has(save_invstd) : has(running_mean) && has(running_var),
                op, ": expected ",
                train ? "'save_mean' and 'save_invstd' in training"
                      : "'running_mean' and 'running_var' outside of training");
  ScalarType stored = parameter_type(input, {&weight, &running_mean, &save_mean});
  Layout layout(input);
  const Planes& p = layout.planes;
  if (input.is_meta()) {
    Tensor dx;
    if (output_mask[0]) {
      dx = new_strided(input.sizes(), strides_in_format(input.sizes(), layout.format),
                       input.scalar_type(), kMeta);
    }
    return {dx, output_mask[1] ? new_tensor({channels}, stored, kMeta) : Tensor(),
            output_mask[2] ? new_tensor({channels}, stored, kMeta) : Tensor()};
  }
  if (input.device() != kCPU) {
    return backward_on_device(op, grad_out, input, weight, train ? save_mean : running_mean,
                              train ? save_invstd : running_var, train, eps, stored, output_mask);
  }
  Tensor x = layout.arranged(input), dy = layout.arranged(grad_out);
  PerChannel w(weight, channels, p.dtype, 1);
  PerChannel mean(train ? save_mean : running_mean, channels, p.dtype, 0);
  Tensor invstd = train ? save_invstd->to(p.dtype).contiguous()
                        : running_var->to(p.dtype).add(eps).rsqrt().contiguous();
  if (has_extremes(invstd)) {
    auto [dx, dw, db] = lamella::native_batch_norm_backward(
        grad_out.to(kDouble), input.to(kDouble), in_double(weight), in_double(running_mean),
        in_double(running_var), in_double(save_mean), in_double(save_invstd), train, eps,
        output_mask);
    return {narrowed(dx, input.scalar_type()), narrowed(dw, stored), narrowed(db, stored)};
  }
  Tensor sum = new_tensor({channels}, p.dtype, kCPU), dot = new_tensor({channels}, p.dtype, kCPU);
  channel_sums(p, dy, x, mean.tensor(), sum, dot);
  Tensor dx, dw, db;
  if (output_mask[0]) {
    PerChannel a(channels, p.dtype), b(channels, p.dtype), k(channels, p.dtype);
    visit_wide(p.dtype, [&](auto tag) {
      using T = type_of<decltype(tag)>;
      auto* inverse = static_cast<const T*>(invstd.const_data_ptr());
      auto* s = static_cast<const T*>(sum.const_data_ptr());
      auto* d = static_cast<const T*>(dot.const_data_ptr());
      T count = static_cast<T>(static_cast<double>(p.outer * p.inner));
      for (int64_t c = 0; c < channels; ++c) {
        T slope = w.as<T>()[c] * inverse[c];
        T scale = train ? -slope * inverse[c] * inverse[c] * d[c] / count : T(0);
        a.as<T>()[c] = slope;
        b.as<T>()[c] = scale;
        k.as<T>()[c] = train ? -slope * s[c] / count - scale * mean.as<T>()[c] : T(0);
      }
    });
    dx = layout.made_like(input);
    channel_affine(
        p, {x.const_data_ptr(), dy.const_data_ptr(), dx.data_ptr(), a.data(), b.data(), k.data()});
    if (p.dtype != input.scalar_type()) dx = dx.to(input.scalar_type());
  }
  if (output_mask[1]) dw = dot.mul_(invstd).to(stored);
  if (output_mask[2]) db = sum.to(stored);
  return {dx, dw, db};
}

}  // namespace lamella::native
