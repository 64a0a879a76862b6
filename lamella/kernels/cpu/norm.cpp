// Normalisation over the last dimensions and its backward: native_layer_norm, _fused_rms_norm.
#include <algorithm>
#include <limits>

#include "lamella/kernels/cpu/simd/norm_backward.h"
#include "lamella/kernels/cpu/simd/rows.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
// `count` rows of `size` elements.
struct RowShape {
  int64_t count, size;
  Dims statistics;  // shape of mean and rstd
};

RowShape row_shape(const char* op, const Tensor& input, IntArrayRef normalized_shape) {
  size_t n = normalized_shape.size(), rank = input.sizes().size();
  LAMELLA_CHECK(n >= 1, op, ": expected 'normalized_shape' not to be empty");
  LAMELLA_CHECK(rank >= n && input.sizes().slice(rank - n).equals(normalized_shape), op,
                ": expected 'input' to end in the dimensions ", normalized_shape, ", got ",
                input.sizes());
  LAMELLA_CHECK_NOT_IMPLEMENTED(input.is_floating_point(), op,
                                ": expected 'input' to be floating point, got ",
                                input.scalar_type());
  RowShape shape;
  shape.size = product(normalized_shape);
  shape.count = product(input.sizes().slice(0, rank - n));
  shape.statistics = Dims(input.sizes().slice(0, rank - n));
  shape.statistics.resize(rank, 1);
  return shape;
}
void check_parameter(const char* op, const char* name, const std::optional<Tensor>& parameter,
                     IntArrayRef normalized_shape) {
  if (!parameter || !parameter->defined()) return;
  LAMELLA_CHECK(parameter->sizes().equals(normalized_shape), op, ": expected '", name,
                "' to be of shape ", normalized_shape, ", got ", parameter->sizes());
}
bool is_small(ScalarType dtype) { return dtype == kHalf || dtype == kBFloat16; }
Tensor as_statistic(const std::optional<Tensor>& parameter, ScalarType dtype) {
  if (!parameter || !parameter->defined()) return Tensor();
  return parameter->to(dtype).contiguous();
}
bool has_wider(const std::optional<Tensor>& parameter, ScalarType dtype) {
  return parameter && parameter->defined() && parameter->scalar_type() != dtype;
}

void normalise(const RowShape& shape, const Tensor& input, const Tensor& weight, const Tensor& bias,
               double eps, Tensor& out, Tensor* mean, Tensor& rstd) {
  if (shape.count == 0) return;
  Tensor x = input.contiguous();
  if (x.device() != kCPU) {
    auto on_device = device_lines("layer_norm", x.device().type()).norm;
    const Tensor center = mean != nullptr ? *mean : Tensor();
    return require_on_device(on_device(x, out, weight, bias, center, rstd, shape.size, 1, 1, eps),
                             "layer_norm", x);
  }
  NormRows rows{x.scalar_type(),
                x.const_data_ptr(),
                out.data_ptr(),
                weight.defined() ? weight.const_data_ptr() : nullptr,
                bias.defined() ? bias.const_data_ptr() : nullptr,
                mean != nullptr ? mean->data_ptr() : nullptr,
                rstd.data_ptr(),
                shape.size,
                eps};
  parallel_for(0, shape.count, kGrainSize / 2 / (shape.size + 1) + 1,
               [&](int64_t begin, int64_t end) { norm_on(kCPU, rows, begin, end); });
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input,
                                                     IntArrayRef normalized_shape,
                                                     const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias,
                                                     double eps) {
  const char* op = "layer_norm";
  RowShape shape = row_shape(op, input, normalized_shape);
  check_parameter(op, "weight", weight, normalized_shape);
  check_parameter(op, "bias", bias, normalized_shape);
  ScalarType dtype = input.scalar_type();
  bool mixed = has_wider(weight, dtype) || has_wider(bias, dtype);
  ScalarType inside = is_small(dtype) ? kFloat : dtype;
  ScalarType outside = mixed ? kFloat : dtype;
  Tensor out = new_tensor(input.sizes(), dtype, input.device());
  bool meta = input.is_meta();
  Tensor mean = new_tensor(shape.statistics, meta ? outside : inside, input.device());
  Tensor rstd = new_tensor(shape.statistics, meta ? outside : inside, input.device());
  if (meta) return {out, mean, rstd};
  normalise(shape, input, as_statistic(weight, inside), as_statistic(bias, inside), eps, out, &mean,
            rstd);
  if (outside != inside) {
    mean = mean.to(outside);
    rstd = rstd.to(outside);
  }
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor> _fused_rms_norm(const Tensor& input, IntArrayRef normalized_shape,
                                           const std::optional<Tensor>& weight,
                                           std::optional<double> eps) {
  const char* op = "rms_norm";
  RowShape shape = row_shape(op, input, normalized_shape);
  check_parameter(op, "weight", weight, normalized_shape);
  ScalarType dtype = input.scalar_type();
  ScalarType inside = is_small(dtype) ? kFloat : dtype;
  Tensor out = new_tensor(input.sizes(), dtype, input.device());
  Tensor rstd = new_tensor(shape.statistics, inside, input.device());
  if (input.is_meta()) return {out, rstd};
  // The default eps is the machine epsilon of the dtype of the computation.
  double least = inside == kDouble ? std::numeric_limits<double>::epsilon()
                                   : static_cast<double>(std::numeric_limits<float>::epsilon());
  normalise(shape, input, as_statistic(weight, inside), Tensor(), eps.value_or(least), out, nullptr,
            rstd);
  return {out, rstd};
}

// ---- Backward ----

namespace {
struct NormGradients {
  Tensor input, weight, bias;
};

// `mean` is undefined for an RMS norm. Gradients that are not wanted stay undefined.
NormGradients norm_backward(const char* op, const Tensor& grad_out, const Tensor& input,
                            IntArrayRef normalized_shape, const Tensor& mean, const Tensor& rstd,
                            const std::optional<Tensor>& weight, ScalarType parameters,
                            std::array<bool, 3> wanted) {
  RowShape shape = row_shape(op, input, normalized_shape);
  check_parameter(op, "weight", weight, normalized_shape);
  LAMELLA_CHECK(grad_out.sizes().equals(input.sizes()), op, ": expected 'grad_out' to be of shape ",
                input.sizes(), ", got ", grad_out.sizes());
  LAMELLA_CHECK(!mean.defined() || mean.numel() == shape.count, op,
                ": expected 'mean' to be of shape ", shape.statistics, ", got ", mean.sizes());
  LAMELLA_CHECK(rstd.numel() == shape.count, op, ": expected 'rstd' to be of shape ",
                shape.statistics, ", got ", rstd.sizes());
  ScalarType dtype = input.scalar_type(), inside = dtype == kDouble ? kDouble : kFloat;
  NormGradients result;
  if (wanted[0]) result.input = new_tensor(input.sizes(), inside, input.device());
  if (wanted[1]) result.weight = new_tensor(normalized_shape, inside, input.device());
  if (wanted[2]) result.bias = new_tensor(normalized_shape, inside, input.device());
  if (!input.is_meta()) {
    if (wanted[1]) result.weight.zero_();
    if (wanted[2]) result.bias.zero_();
  }
  if (!input.is_meta() && input.numel() > 0) {
    Tensor x = input.to(inside).contiguous(), dy = grad_out.to(inside).contiguous();
    Tensor w = as_statistic(weight, inside), r = rstd.to(inside).contiguous();
    Tensor m = mean.defined() ? mean.to(inside).contiguous() : Tensor();
    if (x.device() != kCPU) {
      const DeviceLines& on_device = device_lines(op, x.device().type());
      if (wanted[0]) {
        require_on_device(on_device.norm_backward(dy, x, w, m, r, result.input, shape.size, 1, 1),
                          op, x);
      }
      if (wanted[1] || wanted[2]) {
        Tensor sums = on_device.norm_sums(dy, x, m, r, shape.count, shape.size, 1, 1, shape.size);
        if (wanted[1]) result.weight.view({-1}).copy_(sums.select(0, 0));
        if (wanted[2]) result.bias.view({-1}).copy_(sums.select(0, 1));
      }
    } else {
      // Each part sums the parameters' gradients separately; the parts are then added in order.
      // Their number depends only on the sizes, so results do not depend on the number of threads.
      constexpr int64_t kMaxParts = 16;
      int64_t parts = shape.count * shape.size / kGrainSize + 1;
      parts = std::min({parts, shape.count, kMaxParts});
      Tensor sums;
      if (wanted[1] || wanted[2]) {
        sums = lamella::zeros({parts, 2, shape.size}, TensorOptions(inside));
      }
      auto size = static_cast<int64_t>(element_size(inside));
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) {
          char* at = sums.defined()
                         ? static_cast<char*>(sums.data_ptr()) + part * 2 * shape.size * size
                         : nullptr;
          NormBackward rows{inside,
                            dy.const_data_ptr(),
                            x.const_data_ptr(),
                            w.defined() ? w.const_data_ptr() : nullptr,
                            m.defined() ? m.const_data_ptr() : nullptr,
                            r.const_data_ptr(),
                            wanted[0] ? result.input.data_ptr() : nullptr,
                            at,
                            at == nullptr ? nullptr : at + shape.size * size,
                            shape.size};
          norm_backward_on(kCPU, rows, part * shape.count / parts,
                           (part + 1) * shape.count / parts);
        }
      });
      for (int64_t part = 0; part < parts && sums.defined(); ++part) {
        Tensor both = sums.select(0, part);
        if (wanted[1]) result.weight.view({-1}).add_(both.select(0, 0));
        if (wanted[2]) result.bias.view({-1}).add_(both.select(0, 1));
      }
    }
  }
  if (wanted[0] && inside != dtype) result.input = result.input.to(dtype);
  if (wanted[1] && inside != parameters) result.weight = result.weight.to(parameters);
  if (wanted[2] && inside != parameters) result.bias = result.bias.to(parameters);
  return result;
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(
    const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape, const Tensor& mean,
    const Tensor& rstd, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    std::array<bool, 3> output_mask) {
  ScalarType parameters = weight && weight->defined() ? weight->scalar_type()
                          : bias && bias->defined()   ? bias->scalar_type()
                                                      : input.scalar_type();
  NormGradients g = norm_backward("native_layer_norm_backward", grad_out, input, normalized_shape,
                                  mean, rstd, weight, parameters, output_mask);
  return {g.input, g.weight, g.bias};
}
std::tuple<Tensor, Tensor> _fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                    IntArrayRef normalized_shape,
                                                    const Tensor& rstd,
                                                    const std::optional<Tensor>& weight,
                                                    std::array<bool, 2> output_mask) {
  ScalarType parameters = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  NormGradients g =
      norm_backward("_fused_rms_norm_backward", grad_out, input, normalized_shape, Tensor(), rstd,
                    weight, parameters, {output_mask[0], output_mask[1], false});
  return {g.input, g.weight};
}

}  // namespace lamella::native
