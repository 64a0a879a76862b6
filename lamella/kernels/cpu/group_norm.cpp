// Group normalisation and its backward.
#include <cmath>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/channel_norm.h"
#include "lamella/kernels/device_lines.h"

namespace lamella::native {

namespace {
using Parameter = std::optional<Tensor>;
bool has(const Parameter& tensor) { return tensor.has_value() && tensor->defined(); }

void check_groups(const char* op, const Tensor& input, const Parameter& weight,
                  const Parameter& bias, int64_t n, int64_t channels, int64_t inner,
                  int64_t groups) {
  LAMELLA_CHECK_NOT_IMPLEMENTED(input.is_floating_point() && !is_float8(input.scalar_type()), op,
                                ": expected 'input' to be floating point, got ",
                                input.scalar_type());
  LAMELLA_CHECK(groups > 0 && channels % groups == 0, op, ": expected 'num_groups' to divide ",
                channels, " channels, got ", groups);
  int64_t elements = 0;
  bool counted = n >= 0 && channels > 0 && inner >= 0 &&
                 !__builtin_mul_overflow(n, channels, &elements) &&
                 !__builtin_mul_overflow(elements, inner, &elements);
  LAMELLA_CHECK(counted && input.numel() == elements, op, ": expected 'input' to have ", n, " * ",
                channels, " * ", inner, " elements, got ", input.numel());
  LAMELLA_CHECK(!has(weight) || (weight->dim() == 1 && weight->numel() == channels), op,
                ": expected 'weight' to be of shape [", channels, "], got ", weight->sizes());
  LAMELLA_CHECK(!has(bias) || (bias->dim() == 1 && bias->numel() == channels), op,
                ": expected 'bias' to be of shape [", channels, "], got ", bias->sizes());
}
// Gives a result the input's memory format, because a later dropout draws in the order in memory.
Tensor laid_as(const Tensor& input, const Tensor& made) {
  return made.contiguous(input.suggest_memory_format());
}
Tensor in_type(const Parameter& parameter, ScalarType dtype) {
  return has(parameter) ? parameter->to(dtype).contiguous() : Tensor();
}
ScalarType statistics_type(const Tensor& input, const Parameter& weight) {
  bool wider = has(weight) && weight->scalar_type() != input.scalar_type();
  return wider ? kFloat : input.scalar_type();
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Parameter& weight,
                                                     const Parameter& bias, int64_t N, int64_t C,
                                                     int64_t HxW, int64_t group, double eps) {
  const char* op = "group_norm";
  check_groups(op, input, weight, bias, N, C, HxW, group);
  ScalarType dtype = input.scalar_type(), wide = wide_type(dtype);
  ScalarType stored = statistics_type(input, weight);
  if (input.is_meta()) {
    return {laid_as(input, new_tensor(input.sizes(), dtype, kMeta)),
            new_tensor({N, group}, stored, kMeta), new_tensor({N, group}, stored, kMeta)};
  }
  int64_t in_group = C / group;
  Tensor mean = new_tensor({N, group}, wide, input.device());
  Tensor rstd = new_tensor({N, group}, wide, input.device());
  if (input.device() != kCPU && input.numel() > 0) {
    auto on_device = device_lines(op, input.device().type()).norm;
    Tensor out = new_tensor(input.sizes(), dtype, input.device());
    require_on_device(on_device(input.contiguous(), out, in_type(weight, wide), in_type(bias, wide),
                                mean, rstd, in_group * HxW, HxW, group, eps),
                      op, input);
    return {laid_as(input, out), narrowed(mean, stored), narrowed(rstd, stored)};
  }
  Tensor x = input.to(wide).contiguous(), out = new_tensor(input.sizes(), wide, input.device());
  if (input.numel() == 0) {
    mean.zero_();
    rstd.fill_(1 / std::sqrt(eps));
    return {laid_as(input, out.to(dtype)), mean.to(stored), rstd.to(stored)};
  }
  channel_moments({wide, 1, N * group, in_group * HxW}, x, mean, rstd);
  if (is_out_of_range(rstd, eps)) {
    if (Rescaled r(input, eps); r.numbers.defined()) {
      auto [y, m, inverse] =
          native_group_norm(r.numbers, in_double(weight), in_double(bias), N, C, HxW, group, r.eps);
      if (r.scale != 1) {
        m = m.div(r.scale);
        inverse = inverse.mul(r.scale);
      }
      return {narrowed(y, dtype), narrowed(m, stored), narrowed(inverse, stored)};
    }
  }
  PerChannel w(weight, C, wide, 1), shift(bias, C, wide, 0);
  PerChannel scale(N * C, wide), offset(N * C, wide);
  visit_wide(wide, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    auto* m = static_cast<const T*>(mean.const_data_ptr());
    auto* r = static_cast<T*>(rstd.data_ptr());
    T *scales = scale.as<T>(), *offsets = offset.as<T>();
    for (int64_t g = 0; g < N * group; ++g) {
      r[g] = static_cast<T>(1 / std::sqrt(static_cast<double>(r[g]) + eps));
      const T* weights = w.as<T>() + g % group * in_group;
      const T* shifts = shift.as<T>() + g % group * in_group;
      for (int64_t c = 0; c < in_group; ++c, ++scales, ++offsets) {
        *scales = r[g] * weights[c];
        *offsets = shifts[c] - m[g] * *scales;
      }
    }
  });
  channel_affine({wide, 1, N * C, HxW}, {x.const_data_ptr(), nullptr, out.data_ptr(), nullptr,
                                         scale.data(), offset.data()});
  return {laid_as(input, wide == dtype ? out : out.to(dtype)), mean.to(stored), rstd.to(stored)};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(
    const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
    const Parameter& weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
    std::array<bool, 3> output_mask) {
  const char* op = "native_group_norm_backward";
  check_groups(op, input, weight, std::nullopt, N, C, HxW, group);
  LAMELLA_CHECK(grad_out.sizes().equals(input.sizes()), op, ": expected 'grad_out' to be of shape ",
                input.sizes(), ", got ", grad_out.sizes());
  LAMELLA_CHECK(mean.numel() == N * group, op, ": expected 'mean' to be of shape [", N, ", ", group,
                "], got ", mean.sizes());
  LAMELLA_CHECK(rstd.numel() == N * group, op, ": expected 'rstd' to be of shape [", N, ", ", group,
                "], got ", rstd.sizes());
  ScalarType dtype = input.scalar_type(), wide = wide_type(dtype);
  ScalarType stored = has(weight) ? weight->scalar_type() : dtype;
  Tensor dx, dw, db;
  if (output_mask[0]) dx = new_tensor(input.sizes(), wide, input.device());
  if (output_mask[1]) dw = lamella::zeros({C}, TensorOptions(wide).device(input.device()));
  if (output_mask[2]) db = lamella::zeros({C}, TensorOptions(wide).device(input.device()));
  auto finished = [](const Tensor& t, ScalarType to) {
    return t.defined() && t.scalar_type() != to ? t.to(to) : t;
  };
  if (input.is_meta() || input.numel() == 0) {
    return {dx.defined() ? laid_as(input, finished(dx, dtype)) : dx, finished(dw, stored),
            finished(db, stored)};
  }
  int64_t in_group = C / group, rows = N * C;
  Tensor x = input.to(wide).contiguous(), dy = grad_out.to(wide).contiguous();
  Tensor means = mean.to(wide).contiguous(), inverse = rstd.to(wide).contiguous();
  if (input.device() != kCPU) {
    const DeviceLines& lines = device_lines(op, input.device().type());
    if (dx.defined()) {
      require_on_device(lines.norm_backward(dy, x, in_type(weight, wide), means, inverse, dx,
                                            in_group * HxW, HxW, group),
                        op, input);
    }
    if (dw.defined() || db.defined()) {
      Tensor sums = lines.norm_sums(dy, x, means, inverse, N, C, HxW, group, in_group);
      if (dw.defined()) dw.copy_(sums.select(0, 0));
      if (db.defined()) db.copy_(sums.select(0, 1));
    }
    return {dx.defined() ? laid_as(input, finished(dx, dtype)) : dx, finished(dw, stored),
            finished(db, stored)};
  }
  if (has_extremes(inverse)) {
    auto [gx, gw, gb] = native_group_norm_backward(
        grad_out.to(kDouble), input.to(kDouble), mean.to(kDouble), rstd.to(kDouble),
        in_double(weight), N, C, HxW, group, output_mask);
    return {narrowed(gx, dtype), narrowed(gw, stored), narrowed(gb, stored)};
  }
  PerChannel w(weight, C, wide, 1), centre(rows, wide), sum(rows, wide), dot(rows, wide);
  PerChannel a(rows, wide), b(rows, wide), k(rows, wide);
  visit_wide(wide, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    auto* m = static_cast<const T*>(means.const_data_ptr());
    auto* r = static_cast<const T*>(inverse.const_data_ptr());
    for (int64_t i = 0; i < rows; ++i) centre.as<T>()[i] = m[i / in_group];
    channel_sums({wide, 1, rows, HxW}, dy, x, centre.tensor(), sum.tensor(), dot.tensor());
    T count = static_cast<T>(static_cast<double>(in_group * HxW));
    for (int64_t g = 0; g < N * group; ++g) {
      double sums = 0, dots = 0;
      for (int64_t i = g * in_group; i < (g + 1) * in_group; ++i) {
        sums += static_cast<double>(w.as<T>()[i % C] * sum.as<T>()[i]);
        dots += static_cast<double>(w.as<T>()[i % C] * dot.as<T>()[i]);
      }
      T scale = -r[g] * r[g] * r[g] * static_cast<T>(dots) / count;
      T shift = -r[g] * static_cast<T>(sums) / count - scale * m[g];
      for (int64_t i = g * in_group; i < (g + 1) * in_group; ++i) {
        a.as<T>()[i] = r[g] * w.as<T>()[i % C];
        b.as<T>()[i] = scale;
        k.as<T>()[i] = shift;
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      if (dw.defined()) static_cast<T*>(dw.data_ptr())[i % C] += dot.as<T>()[i] * r[i / in_group];
      if (db.defined()) static_cast<T*>(db.data_ptr())[i % C] += sum.as<T>()[i];
    }
  });
  if (dx.defined()) {
    channel_affine({wide, 1, rows, HxW}, {x.const_data_ptr(), dy.const_data_ptr(), dx.data_ptr(),
                                          a.data(), b.data(), k.data()});
  }
  return {dx.defined() ? laid_as(input, finished(dx, dtype)) : dx, finished(dw, stored),
          finished(db, stored)};
}

}  // namespace lamella::native
