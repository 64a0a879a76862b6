// lamella::nn::functional: layers and losses as functions, built from Lamella's operators.
#pragma once
#include "lamella/layers/autograd/grad_mode.h"
#include "lamella/nn/options.h"

namespace lamella::nn::functional {

namespace detail {
using namespace lamella::nn::detail;
}  // namespace detail

// ---- Convolutions and products -----------------------------------------------------------------

template <size_t D>
struct ConvFuncOptions {
  LAMELLA_OPTION(Tensor, bias);
  LAMELLA_OPTION(Each<D>, stride) = 1;
  LAMELLA_OPTION(Padding<D>, padding) = 0;
  LAMELLA_OPTION(Each<D>, output_padding) = 0;  // only for transposed convolutions
  LAMELLA_OPTION(Each<D>, dilation) = 1;
  LAMELLA_OPTION(int64_t, groups) = 1;
};
#define LAMELLA_CONV(D)                                                                         \
  using Conv##D##dFuncOptions = ConvFuncOptions<D>;                                             \
  using ConvTranspose##D##dFuncOptions = ConvFuncOptions<D>;                                    \
  LAMELLA_LAZY Tensor conv##D##d(const Tensor& input, const Tensor& weight,                     \
                                 const ConvFuncOptions<D>& options = {}) {                      \
    auto bias = detail::maybe(options.bias());                                                  \
    if (const char* word = options.padding().word()) {                                          \
      return lamella::conv##D##d(input, weight, bias, options.stride(), std::string_view(word), \
                                 options.dilation(), options.groups());                         \
    }                                                                                           \
    return lamella::conv##D##d(input, weight, bias, options.stride(),                           \
                               IntArrayRef(options.padding().numbers()), options.dilation(),    \
                               options.groups());                                               \
  }                                                                                             \
  LAMELLA_LAZY Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,           \
                                           const ConvFuncOptions<D>& options = {}) {            \
    LAMELLA_CHECK_VALUE(options.padding().word() == nullptr,                                    \
                        "conv_transpose" #D "d: expected 'padding' to be numbers, got ",        \
                        options.padding().word());                                              \
    return lamella::conv_transpose##D##d(input, weight, detail::maybe(options.bias()),          \
                                         options.stride(), options.padding().numbers(),         \
                                         options.output_padding(), options.groups(),            \
                                         options.dilation());                                   \
  }
LAMELLA_CONV(1)
LAMELLA_CONV(2)
LAMELLA_CONV(3)
#undef LAMELLA_CONV

LAMELLA_LAZY Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  return lamella::linear(input, weight, detail::maybe(bias));
}
LAMELLA_LAZY Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                             const Tensor& bias = {}) {
  static const auto op = detail::find<Tensor, const Tensor&, const Tensor&, const Tensor&,
                                      const std::optional<Tensor>&>("aten::bilinear");
  return op.call(input1, input2, weight, detail::maybe(bias));
}
LAMELLA_LAZY Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1) {
  return lamella::one_hot(tensor, num_classes);
}

// ---- Norms -------------------------------------------------------------------------------------

struct BatchNormFuncOptions {
  LAMELLA_OPTION(Tensor, weight);
  LAMELLA_OPTION(Tensor, bias);
  LAMELLA_OPTION(bool, training) = false;
  LAMELLA_OPTION(std::optional<double>, momentum) = 0.1;
  LAMELLA_OPTION(double, eps) = 1e-5;
};
LAMELLA_LAZY Tensor batch_norm(const Tensor& input, const Tensor& running_mean,
                               const Tensor& running_var,
                               const BatchNormFuncOptions& options = {}) {
  return lamella::batch_norm(input, detail::maybe(options.weight()), detail::maybe(options.bias()),
                             detail::maybe(running_mean), detail::maybe(running_var),
                             options.training(), options.momentum().value_or(0), options.eps(),
                             false);
}
struct InstanceNormFuncOptions {
  LAMELLA_OPTION(Tensor, running_mean);
  LAMELLA_OPTION(Tensor, running_var);
  LAMELLA_OPTION(Tensor, weight);
  LAMELLA_OPTION(Tensor, bias);
  LAMELLA_OPTION(bool, use_input_stats) = true;
  LAMELLA_OPTION(double, momentum) = 0.1;
  LAMELLA_OPTION(double, eps) = 1e-5;
};
LAMELLA_LAZY Tensor instance_norm(const Tensor& input,
                                  const InstanceNormFuncOptions& options = {}) {
  return lamella::instance_norm(
      input, detail::maybe(options.weight()), detail::maybe(options.bias()),
      detail::maybe(options.running_mean()), detail::maybe(options.running_var()),
      options.use_input_stats(), options.momentum(), options.eps(), false);
}
struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> shape)  // NOLINT: implicit
      : normalized_shape_(std::move(shape)) {}
  LAMELLA_OPTION(std::vector<int64_t>, normalized_shape);
  LAMELLA_OPTION(Tensor, weight);
  LAMELLA_OPTION(Tensor, bias);
  LAMELLA_OPTION(double, eps) = 1e-5;
};
LAMELLA_LAZY Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options) {
  return lamella::layer_norm(input, options.normalized_shape(), detail::maybe(options.weight()),
                             detail::maybe(options.bias()), options.eps());
}
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, num_groups);
  LAMELLA_OPTION(Tensor, weight);
  LAMELLA_OPTION(Tensor, bias);
  LAMELLA_OPTION(double, eps) = 1e-5;
};
LAMELLA_LAZY Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options) {
  return lamella::group_norm(input, options.num_groups(), detail::maybe(options.weight()),
                             detail::maybe(options.bias()), options.eps());
}
struct NormalizeFuncOptions {
  LAMELLA_OPTION(double, p) = 2;
  LAMELLA_OPTION(int64_t, dim) = 1;
  LAMELLA_OPTION(double, eps) = 1e-12;
  LAMELLA_OPTION(std::optional<Tensor>, out);
};
LAMELLA_LAZY Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {}) {
  Tensor length = lamella::norm(input, Scalar(options.p()), {options.dim()}, true);
  length = length.clamp_min(options.eps()).expand_as(input);
  if (!options.out()) return input / length;
  Tensor out = *options.out();
  return lamella::div_out(out, input, length);
}

// ---- Activations -------------------------------------------------------------------------------

struct DropoutFuncOptions {
  LAMELLA_OPTION(double, p) = 0.5;
  LAMELLA_OPTION(bool, training) = true;
  LAMELLA_OPTION(bool, inplace) = false;
};
LAMELLA_LAZY Tensor dropout(Tensor input, const DropoutFuncOptions& options = {}) {
  LAMELLA_CHECK_VALUE(options.p() >= 0 && options.p() <= 1,
                      "dropout: expected 'p' to be from 0 to 1, got ", options.p());
  return options.inplace() ? lamella::dropout_(input, options.p(), options.training())
                           : lamella::dropout(input, options.p(), options.training());
}
// Dropout of whole channels.
#define LAMELLA_CHANNEL_DROPOUT(name)                                                            \
  LAMELLA_LAZY Tensor name(Tensor input, const DropoutFuncOptions& options = {}) {               \
    LAMELLA_CHECK_VALUE(options.p() >= 0 && options.p() <= 1,                                    \
                        #name ": expected 'p' to be from 0 to 1, got ", options.p());            \
    return options.inplace() ? lamella::feature_dropout_(input, options.p(), options.training()) \
                             : lamella::feature_dropout(input, options.p(), options.training()); \
  }
LAMELLA_CHANNEL_DROPOUT(dropout2d)
LAMELLA_CHANNEL_DROPOUT(dropout3d)
#undef LAMELLA_CHANNEL_DROPOUT
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLUOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ELUFuncOptions = ELUOptions;
using CELUFuncOptions = CELUOptions;
using GELUFuncOptions = GELUOptions;
using GLUFuncOptions = GLUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using HardtanhFuncOptions = HardtanhOptions;
using SoftmaxFuncOptions = SoftmaxOptions;
using LogSoftmaxFuncOptions = LogSoftmaxOptions;

#define LAMELLA_INPLACE(name, ...) \
  (options.inplace() ? lamella::name##_(__VA_ARGS__) : lamella::name(__VA_ARGS__))
#define LAMELLA_ACTIVATION(name, Options, call) \
  LAMELLA_LAZY Tensor name(Tensor input, const Options& options = {}) { return call; }
LAMELLA_ACTIVATION(relu, ReLUOptions, LAMELLA_INPLACE(relu, input))
LAMELLA_ACTIVATION(relu6, ReLUOptions, LAMELLA_INPLACE(hardtanh, input, 0, 6))
LAMELLA_ACTIVATION(selu, ReLUOptions, LAMELLA_INPLACE(selu, input))
LAMELLA_ACTIVATION(leaky_relu, LeakyReLUOptions,
                   LAMELLA_INPLACE(leaky_relu, input, options.negative_slope()))
LAMELLA_ACTIVATION(elu, ELUOptions, LAMELLA_INPLACE(elu, input, options.alpha()))
LAMELLA_ACTIVATION(celu, CELUOptions, LAMELLA_INPLACE(celu, input, options.alpha()))
LAMELLA_ACTIVATION(hardtanh, HardtanhOptions,
                   LAMELLA_INPLACE(hardtanh, input, options.min_val(), options.max_val()))
LAMELLA_ACTIVATION(gelu, GELUOptions, lamella::gelu(input, options.approximate()))
LAMELLA_ACTIVATION(glu, GLUOptions, lamella::glu(input, options.dim()))
LAMELLA_ACTIVATION(softplus, SoftplusOptions,
                   lamella::softplus(input, options.beta(), options.threshold()))
#undef LAMELLA_ACTIVATION
#undef LAMELLA_INPLACE
LAMELLA_LAZY Tensor silu(const Tensor& input) { return lamella::silu(input); }
LAMELLA_LAZY Tensor mish(const Tensor& input) { return lamella::mish(input); }
LAMELLA_LAZY Tensor prelu(const Tensor& input, const Tensor& weight) {
  return lamella::prelu(input, weight);
}
LAMELLA_LAZY Tensor logsigmoid(const Tensor& input) { return lamella::log_sigmoid(input); }
LAMELLA_LAZY Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
LAMELLA_LAZY Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
#define LAMELLA_SOFTMAX(name, Options, function, value)                      \
  LAMELLA_LAZY Tensor name(const Tensor& input, const Options& options,      \
                           std::optional<ScalarType> dtype = std::nullopt) { \
    return lamella::function(value, options.dim(), dtype);                   \
  }
LAMELLA_SOFTMAX(softmax, SoftmaxOptions, softmax, input)
LAMELLA_SOFTMAX(softmin, SoftmaxOptions, softmax, -input)
LAMELLA_SOFTMAX(log_softmax, LogSoftmaxOptions, log_softmax, input)
#undef LAMELLA_SOFTMAX

// ---- Windows and pictures ----------------------------------------------------------------------

#define LAMELLA_POOL(D, ...)                                                                    \
  using MaxPool##D##dFuncOptions = PoolOptions<D>;                                              \
  using AvgPool##D##dFuncOptions = PoolOptions<D>;                                              \
  using AdaptiveAvgPool##D##dFuncOptions = AdaptivePoolOptions<D>;                              \
  using AdaptiveMaxPool##D##dFuncOptions = AdaptivePoolOptions<D>;                              \
  LAMELLA_LAZY Tensor max_pool##D##d(const Tensor& input, const PoolOptions<D>& options) {      \
    return lamella::max_pool##D##d(input, options.kernel_size(), options.stride(),              \
                                   options.padding(), options.dilation(), options.ceil_mode()); \
  }                                                                                             \
  LAMELLA_LAZY std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(                          \
      const Tensor& input, const PoolOptions<D>& options) {                                     \
    return lamella::max_pool##D##d_with_indices(input, options.kernel_size(), options.stride(), \
                                                options.padding(), options.dilation(),          \
                                                options.ceil_mode());                           \
  }                                                                                             \
  LAMELLA_LAZY Tensor avg_pool##D##d(const Tensor& input, const PoolOptions<D>& options) {      \
    return lamella::avg_pool##D##d(input, options.kernel_size(), options.stride(),              \
                                   options.padding(), options.ceil_mode(),                      \
                                   options.count_include_pad() __VA_OPT__(, ) __VA_ARGS__);     \
  }                                                                                             \
  LAMELLA_LAZY Tensor adaptive_avg_pool##D##d(const Tensor& input,                              \
                                              const AdaptivePoolOptions<D>& options) {          \
    return lamella::adaptive_avg_pool##D##d(input, options.output_size());                      \
  }                                                                                             \
  LAMELLA_LAZY Tensor adaptive_max_pool##D##d(const Tensor& input,                              \
                                              const AdaptivePoolOptions<D>& options) {          \
    return std::get<0>(lamella::adaptive_max_pool##D##d(input, options.output_size()));         \
  }                                                                                             \
  LAMELLA_LAZY std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                 \
      const Tensor& input, const AdaptivePoolOptions<D>& options) {                             \
    return lamella::adaptive_max_pool##D##d(input, options.output_size());                      \
  }
LAMELLA_POOL(1)
LAMELLA_POOL(2, options.divisor_override())
LAMELLA_POOL(3, options.divisor_override())
#undef LAMELLA_POOL

struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT: implicit
  LAMELLA_OPTION(std::vector<int64_t>, pad);
  LAMELLA_OPTION(Word, mode) = kConstant;
  LAMELLA_OPTION(double, value) = 0;
};
LAMELLA_LAZY Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  return lamella::pad(
      input, options.pad(), options.mode().text,
      options.mode() == kConstant ? std::optional<double>(options.value()) : std::nullopt);
}

struct InterpolateFuncOptions {
  LAMELLA_OPTION(std::optional<std::vector<int64_t>>, size);
  LAMELLA_OPTION(std::optional<std::vector<double>>, scale_factor);
  LAMELLA_OPTION(Word, mode) = kNearest;
  LAMELLA_OPTION(std::optional<bool>, align_corners);
  LAMELLA_OPTION(std::optional<bool>, recompute_scale_factor);
  LAMELLA_OPTION(bool, antialias) = false;
};
namespace detail {
using Factors = std::optional<ArrayRef<double>>;
// Calls the operator of the upsample_… family with this name, in its overload for sizes or factors.
LAMELLA_LAZY Tensor upsample(std::string name, const Tensor& input, OptionalIntArrayRef size,
                             std::optional<bool> align_corners, Factors factors) {
  if (!align_corners) {
    return Dispatcher::singleton()
        .findSchemaOrThrow(name.c_str(), "vec")
        .typed<Tensor(const Tensor&, OptionalIntArrayRef, Factors)>()
        .call(input, size, factors);
  }
  return Dispatcher::singleton()
      .findSchemaOrThrow(name.c_str(), "vec")
      .typed<Tensor(const Tensor&, OptionalIntArrayRef, bool, Factors)>()
      .call(input, size, *align_corners, factors);
}
}  // namespace detail
// The input has 3 to 5 dimensions; all after the first two are resized to a size or by factors.
LAMELLA_LAZY Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {}) {
  int64_t d = input.dim() - 2;
  LAMELLA_CHECK_VALUE(d >= 1 && d <= 3,
                      "interpolate: expected 'input' to have 3 to 5 dimensions, got ", input.dim());
  LAMELLA_CHECK_VALUE(options.size().has_value() != options.scale_factor().has_value(),
                      "interpolate: expected one of 'size' and 'scale_factor', got ",
                      options.size() ? "both" : "neither");
  LAMELLA_CHECK_VALUE(!options.antialias(), "interpolate: expected 'antialias' to be false");
  auto spread = [d](auto list) {
    if (list.size() == 1) list.resize(static_cast<size_t>(d), list[0]);
    LAMELLA_CHECK_VALUE(static_cast<int64_t>(list.size()) == d, "interpolate: expected ", d,
                        " sizes or factors, got ", list.size());
    return list;
  };
  std::optional<std::vector<int64_t>> size;
  std::optional<std::vector<double>> factors;
  if (options.size()) size = spread(*options.size());
  if (options.scale_factor()) factors = spread(*options.scale_factor());
  if (factors && (options.recompute_scale_factor().value_or(false) || options.mode() == kArea)) {
    size.emplace();
    for (int64_t i = 0; i < d; ++i) {
      size->push_back(static_cast<int64_t>(static_cast<double>(input.size(i + 2)) *
                                           (*factors)[static_cast<size_t>(i)]));
    }
    factors.reset();
  }
  if (options.mode() == kArea) {
    return d == 1   ? lamella::adaptive_avg_pool1d(input, *size)
           : d == 2 ? lamella::adaptive_avg_pool2d(input, *size)
                    : lamella::adaptive_avg_pool3d(input, *size);
  }
  OptionalIntArrayRef sizes;
  if (size) sizes = IntArrayRef(*size);
  detail::Factors scales;
  if (factors) scales = ArrayRef<double>(*factors);
  std::string dims = std::to_string(d) + "d";
  if (options.mode() == kNearest || options.mode() == kNearestExact) {
    LAMELLA_CHECK_VALUE(!options.align_corners(), "interpolate: expected no 'align_corners' for ",
                        options.mode());
    const char* name =
        options.mode() == kNearest ? "aten::upsample_nearest" : "aten::_upsample_nearest_exact";
    return detail::upsample(name + dims, input, sizes, std::nullopt, scales);
  }
  constexpr Word fitting[] = {kLinear, kBilinear, kTrilinear};
  LAMELLA_CHECK_VALUE(options.mode() == fitting[d - 1] || (options.mode() == kBicubic && d == 2),
                      "interpolate: expected a 'mode' for ", input.dim(), " dimensions, got ",
                      options.mode());
  return detail::upsample(str("aten::upsample_", options.mode(), dims), input, sizes,
                          options.align_corners().value_or(false), scales);
}

struct GridSampleFuncOptions {
  LAMELLA_OPTION(Word, mode) = kBilinear;
  LAMELLA_OPTION(Word, padding_mode) = kZeros;
  LAMELLA_OPTION(std::optional<bool>, align_corners);
};
LAMELLA_LAZY Tensor grid_sample(const Tensor& input, const Tensor& grid,
                                const GridSampleFuncOptions& options = {}) {
  auto number = [](const char* what, Word word, std::initializer_list<Word> known) -> int64_t {
    int64_t i = 0;
    for (Word each : known) {
      if (each == word) return i;
      ++i;
    }
    LAMELLA_CHECK_VALUE(false, "grid_sample: expected a known '", what, "', got ", word);
    return 0;
  };
  static const auto op = detail::find<Tensor, const Tensor&, const Tensor&, int64_t, int64_t, bool>(
      "aten::grid_sampler");
  return op.call(input, grid, number("mode", options.mode(), {kBilinear, kNearest, kBicubic}),
                 number("padding_mode", options.padding_mode(), {kZeros, kBorder, kReflection}),
                 options.align_corners().value_or(false));
}
// The sampling grid of an affine map, for grid_sample: theta is [N, 2, 3] for a size of [N, C, H,
// W], or [N, 3, 4] for [N, C, D, H, W].
LAMELLA_LAZY Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false) {
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  LAMELLA_CHECK_VALUE((dims == 2 || dims == 3) && theta.dim() == 3 && theta.size(0) == size[0] &&
                          theta.size(1) == dims && theta.size(2) == dims + 1,
                      "affine_grid: expected 'theta' to be [N, 2, 3] with 4 sizes or [N, 3, 4] "
                      "with 5, got ",
                      theta.sizes(), " with ", size);
  std::vector<Tensor> columns;
  for (int64_t i = 0; i < dims; ++i) {  // the coordinates begin with x, the last dimension
    int64_t n = size[static_cast<size_t>(dims + 1 - i)];
    LAMELLA_CHECK_VALUE(n > 0, "affine_grid: expected 'size' to be positive, got ", size);
    double end = n == 1 ? 0 : align_corners ? 1 : 1 - 1 / static_cast<double>(n);
    std::vector<int64_t> line(static_cast<size_t>(dims), 1);
    line[static_cast<size_t>(dims - 1 - i)] = n;
    columns.push_back(
        lamella::linspace(-end, end, n, theta.options()).view(line).expand(size.slice(2)));
  }
  columns.push_back(lamella::ones_like(columns[0]));
  Tensor places = lamella::stack(columns, -1).view({-1, dims + 1});
  std::vector<int64_t> shape(size.slice(2).begin(), size.slice(2).end());
  shape.insert(shape.begin(), size[0]);
  shape.push_back(dims);
  return lamella::matmul(places, theta.transpose(1, 2)).view(shape);
}

struct UnfoldFuncOptions {
  LAMELLA_FROM_EACH(UnfoldFuncOptions, 2, kernel_size_(each))
  LAMELLA_OPTION(Each<2>, kernel_size);
  LAMELLA_OPTION(Each<2>, dilation) = 1;
  LAMELLA_OPTION(Each<2>, padding) = 0;
  LAMELLA_OPTION(Each<2>, stride) = 1;
};
LAMELLA_LAZY Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options) {
  return lamella::im2col(input, options.kernel_size(), options.dilation(), options.padding(),
                         options.stride());
}
struct FoldFuncOptions {
  FoldFuncOptions(Each<2> output_size, Each<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  LAMELLA_OPTION(Each<2>, output_size);
  LAMELLA_OPTION(Each<2>, kernel_size);
  LAMELLA_OPTION(Each<2>, dilation) = 1;
  LAMELLA_OPTION(Each<2>, padding) = 0;
  LAMELLA_OPTION(Each<2>, stride) = 1;
};
LAMELLA_LAZY Tensor fold(const Tensor& input, const FoldFuncOptions& options) {
  return lamella::col2im(input, options.output_size(), options.kernel_size(), options.dilation(),
                         options.padding(), options.stride());
}
struct PixelShuffleFuncOptions {
  PixelShuffleFuncOptions(int64_t factor) : upscale_factor_(factor) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, upscale_factor);
};
LAMELLA_LAZY Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options) {
  return lamella::pixel_shuffle(input, options.upscale_factor());
}

// ---- Losses ------------------------------------------------------------------------------------

struct CosineSimilarityFuncOptions {
  LAMELLA_OPTION(int64_t, dim) = 1;
  LAMELLA_OPTION(double, eps) = 1e-8;
};
LAMELLA_LAZY Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                                      const CosineSimilarityFuncOptions& options = {}) {
  return lamella::cosine_similarity(x1, x2, options.dim(), options.eps());
}
struct PairwiseDistanceFuncOptions {
  LAMELLA_OPTION(double, p) = 2;
  LAMELLA_OPTION(double, eps) = 1e-6;
  LAMELLA_OPTION(bool, keepdim) = false;
};
LAMELLA_LAZY Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                                      const PairwiseDistanceFuncOptions& options = {}) {
  return lamella::pairwise_distance(x1, x2, options.p(), options.eps(), options.keepdim());
}

using L1LossFuncOptions = LossOptions;
using MSELossFuncOptions = LossOptions;
using SmoothL1LossFuncOptions = SmoothLossOptions;
using HuberLossFuncOptions = SmoothLossOptions;
using KLDivFuncOptions = KLDivOptions;
using CrossEntropyFuncOptions = ClassLossOptions;
using NLLLossFuncOptions = ClassLossOptions;
using BinaryCrossEntropyFuncOptions = LossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = LogitsLossOptions;

// A loss of input and target; `call` has the number of the reduction as `reduction`.
#define LAMELLA_LOSS_FUNCTION(name, Options, call)                           \
  LAMELLA_LAZY Tensor name(const Tensor& input, const Tensor& target,        \
                           const Options& options = {}) {                    \
    const int64_t reduction = detail::reduction(#name, options.reduction()); \
    return lamella::call;                                                    \
  }
LAMELLA_LOSS_FUNCTION(l1_loss, LossOptions, l1_loss(input, target, reduction))
LAMELLA_LOSS_FUNCTION(mse_loss, LossOptions, mse_loss(input, target, reduction))
LAMELLA_LOSS_FUNCTION(smooth_l1_loss, SmoothLossOptions,
                      smooth_l1_loss(input, target, reduction, options.beta()))
LAMELLA_LOSS_FUNCTION(huber_loss, SmoothLossOptions,
                      huber_loss(input, target, reduction, options.delta()))
LAMELLA_LOSS_FUNCTION(cross_entropy, ClassLossOptions,
                      cross_entropy_loss(input, target, detail::maybe(options.weight()), reduction,
                                         options.ignore_index(), options.label_smoothing()))
LAMELLA_LOSS_FUNCTION(nll_loss, ClassLossOptions,
                      nll_loss_nd(input, target, detail::maybe(options.weight()), reduction,
                                  options.ignore_index()))
LAMELLA_LOSS_FUNCTION(binary_cross_entropy, LossOptions,
                      binary_cross_entropy(input, target, detail::maybe(options.weight()),
                                           reduction))
LAMELLA_LOSS_FUNCTION(binary_cross_entropy_with_logits, LogitsLossOptions,
                      binary_cross_entropy_with_logits(input, target,
                                                       detail::maybe(options.weight()),
                                                       detail::maybe(options.pos_weight()),
                                                       reduction))
LAMELLA_LAZY Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Word reduction,
                                   double beta = 1) {
  return smooth_l1_loss(input, target, SmoothLossOptions().reduction(reduction).beta(beta));
}
LAMELLA_LAZY Tensor kl_div(const Tensor& input, const Tensor& target,
                           const KLDivOptions& options = {}) {
  if (options.reduction() == kBatchMean) {
    Tensor sum = lamella::kl_div(input, target, 2, options.log_target());
    return input.dim() == 0 ? sum : sum / input.size(0);
  }
  return lamella::kl_div(input, target, detail::reduction("kl_div", options.reduction()),
                         options.log_target());
}

}  // namespace lamella::nn::functional
