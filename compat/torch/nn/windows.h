// The layers of lamella::nn over windows and images: unpooling, fractional and
// power-mean pooling, response norms, padding, and rearranging or resizing of pixels.
#pragma once
#include "lamella/nn/modules.h"

namespace lamella::nn {

// ---- Options -----------------------------------------------------------------------------------

template <size_t D>
struct MaxUnpoolOptions {
  LAMELLA_FROM_EACH(MaxUnpoolOptions, D, kernel_size_(each), stride_(each))
  LAMELLA_OPTION(Each<D>, kernel_size);
  LAMELLA_OPTION(Each<D>, stride);
  LAMELLA_OPTION(Each<D>, padding) = 0;
  // The function takes D sizes, or the sizes of all dimensions.
  LAMELLA_OPTION(std::optional<std::vector<int64_t>>, output_size);
};
template <size_t D>
struct FractionalMaxPoolOptions {
  LAMELLA_FROM_EACH(FractionalMaxPoolOptions, D, kernel_size_(each))
  using Ratios = EachOf<double, D>;
  LAMELLA_OPTION(Each<D>, kernel_size);
  LAMELLA_OPTION(std::optional<Each<D>>, output_size);
  LAMELLA_OPTION(std::optional<Ratios>, output_ratio);
  LAMELLA_OPTION(Tensor, _random_samples);
};
template <size_t D>
struct LPPoolOptions {
  LPPoolOptions(double norm_type, Each<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  LAMELLA_OPTION(double, norm_type);
  LAMELLA_OPTION(Each<D>, kernel_size);
  LAMELLA_OPTION(Each<D>, stride);
  LAMELLA_OPTION(bool, ceil_mode) = false;
};
struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, size);
  LAMELLA_OPTION(double, alpha) = 1e-4;
  LAMELLA_OPTION(double, beta) = 0.75;
  LAMELLA_OPTION(double, k) = 1;
};
struct CrossMapLRN2dOptions {
  CrossMapLRN2dOptions(int64_t size) : size_(size) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, size);
  LAMELLA_OPTION(double, alpha) = 1e-4;
  LAMELLA_OPTION(double, beta) = 0.75;
  LAMELLA_OPTION(int64_t, k) = 1;
};
// Padding of the last D dimensions, the last dimension first.
template <size_t D>
struct MarginOptions {
  LAMELLA_FROM_EACH(MarginOptions, 2 * D, padding_(each))
  LAMELLA_OPTION(Each<2 * D>, padding);
};
template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(Each<2 * D> padding, double value) : padding_(padding), value_(value) {}
  LAMELLA_OPTION(Each<2 * D>, padding);
  LAMELLA_OPTION(double, value);
};
struct PixelUnshuffleOptions {
  PixelUnshuffleOptions(int64_t factor) : downscale_factor_(factor) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, downscale_factor);
};
struct UpsampleOptions {
  LAMELLA_OPTION(std::optional<std::vector<int64_t>>, size);
  LAMELLA_OPTION(std::optional<std::vector<double>>, scale_factor);
  LAMELLA_OPTION(Word, mode) = kNearest;
  LAMELLA_OPTION(std::optional<bool>, align_corners);
};
struct UnflattenOptions {
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  // Dimensions by name are absent: NotImplementedError.
  UnflattenOptions(const char* name, const std::vector<std::pair<std::string, int64_t>>&)
      : dim_(0) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(
        false, "Unflatten: expected a dimension by number, got one by name, '", name, "'");
  }
  LAMELLA_OPTION(int64_t, dim);
  LAMELLA_OPTION(std::vector<int64_t>, sizes);
};

// ---- Functions ---------------------------------------------------------------------------------

namespace functional {

using LocalResponseNormFuncOptions = LocalResponseNormOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;

namespace detail {
// The output sizes of max_unpool: the requested sizes may differ from the usual ones by up to a
// stride.
template <size_t D>
std::vector<int64_t> unpooled(const Tensor& input, const MaxUnpoolOptions<D>& options) {
  std::vector<int64_t> sizes;
  const auto& wanted = options.output_size();
  LAMELLA_CHECK_VALUE(!wanted || wanted->size() == D || wanted->size() == D + 2, "max_unpool", D,
                      "d: expected 'output_size' to have ", D, " or ", D + 2, " sizes, got ",
                      wanted->size());
  for (size_t i = 0; i < D; ++i) {
    const int64_t step = options.stride()[i];
    const int64_t usual =
        (input.size(static_cast<int64_t>(i) - static_cast<int64_t>(D)) - 1) * step +
        options.kernel_size()[i] - 2 * options.padding()[i];
    const int64_t size = wanted ? (*wanted)[wanted->size() - D + i] : usual;
    LAMELLA_CHECK_VALUE(size >= usual - step && size <= usual + step, "max_unpool", D,
                        "d: expected 'output_size' from ", usual - step, " to ", usual + step,
                        " in dimension ", i, ", got ", size);
    sizes.push_back(size);
  }
  return sizes;
}
LAMELLA_LAZY Tensor unpool2d(const Tensor& input, const Tensor& indices, IntArrayRef sizes) {
  static const auto op =
      find<Tensor, const Tensor&, const Tensor&, IntArrayRef>("aten::max_unpool2d");
  return op.call(input, indices, sizes);
}
template <size_t D>
std::tuple<Tensor, Tensor> fractional(const Tensor& input,
                                      const FractionalMaxPoolOptions<D>& options) {
  LAMELLA_CHECK_VALUE(options.output_size().has_value() != options.output_ratio().has_value(),
                      "fractional_max_pool", D,
                      "d: expected one of 'output_size' and 'output_ratio', got ",
                      options.output_size() ? "both" : "neither");
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < D; ++i) {
    const auto size =
        static_cast<double>(input.size(static_cast<int64_t>(i) - static_cast<int64_t>(D)));
    sizes.push_back(options.output_size()
                        ? (*options.output_size())[i]
                        : static_cast<int64_t>(size * (*options.output_ratio())[i]));
  }
  constexpr auto dims = static_cast<int64_t>(D);
  Tensor samples = options._random_samples();
  if (!samples.defined()) {
    const int64_t batch = input.dim() == dims + 1 ? 1 : input.size(0);
    samples = lamella::rand({batch, input.size(-dims - 1), dims}, input.options());
  }
  static const auto op =
      find<std::tuple<Tensor, Tensor>, const Tensor&, IntArrayRef, IntArrayRef, const Tensor&>(
          D == 2 ? "aten::fractional_max_pool2d" : "aten::fractional_max_pool3d");
  return op.call(input, options.kernel_size(), sizes, samples);
}
// The p-th root of the sum of powers over a window, from the mean of the powers.
LAMELLA_LAZY Tensor power_mean(const Tensor& mean, double p, double count) {
  return (mean.sign() * mean.abs().relu()).mul(count).pow(1 / p);
}
}  // namespace detail

using MaxUnpool1dFuncOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dFuncOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dFuncOptions = MaxUnpoolOptions<3>;
LAMELLA_LAZY Tensor max_unpool1d(const Tensor& input, const Tensor& indices,
                                 const MaxUnpoolOptions<1>& options) {
  std::vector<int64_t> sizes = detail::unpooled(input, options);
  sizes.push_back(1);
  return detail::unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), sizes).squeeze(-1);
}
LAMELLA_LAZY Tensor max_unpool2d(const Tensor& input, const Tensor& indices,
                                 const MaxUnpoolOptions<2>& options) {
  return detail::unpool2d(input, indices, detail::unpooled(input, options));
}
LAMELLA_LAZY Tensor max_unpool3d(const Tensor& input, const Tensor& indices,
                                 const MaxUnpoolOptions<3>& options) {
  static const auto op =
      detail::find<Tensor, const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef>(
          "aten::max_unpool3d");
  return op.call(input, indices, detail::unpooled(input, options), options.stride(),
                 options.padding());
}

#define LAMELLA_FRACTIONAL(D)                                                                 \
  using FractionalMaxPool##D##dFuncOptions = FractionalMaxPoolOptions<D>;                     \
  LAMELLA_LAZY std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(             \
      const Tensor& input, const FractionalMaxPoolOptions<D>& options) {                      \
    return detail::fractional(input, options);                                                \
  }                                                                                           \
  LAMELLA_LAZY Tensor fractional_max_pool##D##d(const Tensor& input,                          \
                                                const FractionalMaxPoolOptions<D>& options) { \
    return std::get<0>(detail::fractional(input, options));                                   \
  }
LAMELLA_FRACTIONAL(2)
LAMELLA_FRACTIONAL(3)
#undef LAMELLA_FRACTIONAL

#define LAMELLA_LP_POOL(D)                                                                   \
  using LPPool##D##dFuncOptions = LPPoolOptions<D>;                                          \
  LAMELLA_LAZY Tensor lp_pool##D##d(const Tensor& input, const LPPoolOptions<D>& options) {  \
    double count = 1;                                                                        \
    for (size_t i = 0; i < D; ++i) count *= static_cast<double>(options.kernel_size()[i]);   \
    Tensor mean =                                                                            \
        avg_pool##D##d(input.pow(options.norm_type()), PoolOptions<D>(options.kernel_size()) \
                                                           .stride(options.stride())         \
                                                           .ceil_mode(options.ceil_mode())); \
    return detail::power_mean(mean, options.norm_type(), count);                             \
  }
LAMELLA_LP_POOL(1)
LAMELLA_LP_POOL(2)
LAMELLA_LP_POOL(3)
#undef LAMELLA_LP_POOL

// Divides by (k + alpha * m)^beta, where m is the mean square over neighbouring channels, the
// second dimension.
LAMELLA_LAZY Tensor local_response_norm(const Tensor& input,
                                        const LocalResponseNormOptions& options) {
  LAMELLA_CHECK_VALUE(input.dim() >= 3,
                      "local_response_norm: expected 'input' to have 3 or more dimensions, got ",
                      input.dim());
  const int64_t size = options.size();
  Tensor square = input.mul(input).flatten(2).unsqueeze(1);  // [N, 1, C, rest]
  square = lamella::pad(square, {0, 0, size / 2, (size - 1) / 2}, "constant", 0.0);
  Tensor mean = lamella::avg_pool2d(square, {size, 1}, {1, 1}).squeeze(1).view(input.sizes());
  return input / mean.mul(options.alpha()).add(options.k()).pow(options.beta());
}
LAMELLA_LAZY Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleOptions& options) {
  return lamella::pixel_unshuffle(input, options.downscale_factor());
}

}  // namespace functional

// ---- Modules -----------------------------------------------------------------------------------

#define LAMELLA_UNPOOL(D)                                                                      \
  using MaxUnpool##D##dOptions = MaxUnpoolOptions<D>;                                          \
  LAMELLA_LAZY class MaxUnpool##D##dImplOf                                                     \
      : public WithOptions<MaxUnpool##D##dImplOf<lazy_>, MaxUnpoolOptions<D>> {                \
    LAMELLA_WITH_OPTIONS(MaxUnpool##D##d, MaxUnpoolOptions<D>,                                 \
                         "kernel_size=", options.kernel_size(), ", stride=", options.stride(), \
                         ", padding=", options.padding())                                      \
    Tensor forward(const Tensor& input, const Tensor& indices,                                 \
                   const std::optional<std::vector<int64_t>>& output_size = std::nullopt) {    \
      return F::max_unpool##D##d(input, indices,                                               \
                                 MaxUnpoolOptions<D>(options).output_size(output_size));       \
    }                                                                                          \
  };                                                                                           \
  LAMELLA_LAZY_MODULE(MaxUnpool##D##d)
LAMELLA_UNPOOL(1)
LAMELLA_UNPOOL(2)
LAMELLA_UNPOOL(3)
#undef LAMELLA_UNPOOL

using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;
LAMELLA_MAXIMUM(FractionalMaxPool2d, FractionalMaxPoolOptions<2>, fractional_max_pool2d)
LAMELLA_MAXIMUM(FractionalMaxPool3d, FractionalMaxPoolOptions<3>, fractional_max_pool3d)

// Defines the pooling and padding layers of D dimensions.
#define LAMELLA_OF_DIMENSIONS(D)                                                                  \
  using LPPool##D##dOptions = LPPoolOptions<D>;                                                   \
  using ReflectionPad##D##dOptions = MarginOptions<D>;                                            \
  using ReplicationPad##D##dOptions = MarginOptions<D>;                                           \
  using ZeroPad##D##dOptions = MarginOptions<D>;                                                  \
  using ConstantPad##D##dOptions = ConstantPadOptions<D>;                                         \
  LAMELLA_LAZY class LPPool##D##dImplOf                                                           \
      : public WithOptions<LPPool##D##dImplOf<lazy_>, LPPoolOptions<D>> {                         \
    LAMELLA_WITH_OPTIONS(LPPool##D##d, LPPoolOptions<D>, "norm_type=", options.norm_type(),       \
                         ", kernel_size=", options.kernel_size(), ", stride=", options.stride(),  \
                         ", ceil_mode=", options.ceil_mode())                                     \
    LPPool##D##dImplOf(double norm_type, Each<D> kernel_size)                                     \
        : LPPool##D##dImplOf(LPPoolOptions<D>(norm_type, kernel_size)) {}                         \
    Tensor forward(const Tensor& input) { return F::lp_pool##D##d(input, options); }              \
  };                                                                                              \
  LAMELLA_LAZY_MODULE(LPPool##D##d)                                                               \
  LAMELLA_OF_OPTIONS(ReflectionPad##D##d, MarginOptions<D>,                                       \
                     detail::with_margin(input, options.padding(), kReflect),                     \
                     "padding=", IntArrayRef(options.padding()))                                  \
  LAMELLA_OF_OPTIONS(ReplicationPad##D##d, MarginOptions<D>,                                      \
                     detail::with_margin(input, options.padding(), kReplicate),                   \
                     "padding=", IntArrayRef(options.padding()))                                  \
  LAMELLA_OF_OPTIONS(ZeroPad##D##d, MarginOptions<D>,                                             \
                     detail::with_margin(input, options.padding(), kConstant),                    \
                     "padding=", IntArrayRef(options.padding()))                                  \
  LAMELLA_LAZY class ConstantPad##D##dImplOf                                                      \
      : public WithOptions<ConstantPad##D##dImplOf<lazy_>, ConstantPadOptions<D>> {               \
    LAMELLA_WITH_OPTIONS(ConstantPad##D##d, ConstantPadOptions<D>,                                \
                         "padding=", IntArrayRef(options.padding()), ", value=", options.value()) \
    ConstantPad##D##dImplOf(Each<2 * D> padding, double value)                                    \
        : ConstantPad##D##dImplOf(ConstantPadOptions<D>(padding, value)) {}                       \
    Tensor forward(const Tensor& input) {                                                         \
      return detail::with_margin(input, options.padding(), kConstant, options.value());           \
    }                                                                                             \
  };                                                                                              \
  LAMELLA_LAZY_MODULE(ConstantPad##D##d)
namespace detail {
LAMELLA_LAZY Tensor with_margin(const Tensor& input, IntArrayRef padding, Word mode,
                                double value = 0) {
  std::vector<int64_t> margins(padding.begin(), padding.end());
  return F::pad(input, F::PadFuncOptions(margins).mode(mode).value(value));
}
}  // namespace detail
LAMELLA_OF_DIMENSIONS(1)
LAMELLA_OF_DIMENSIONS(2)
LAMELLA_OF_DIMENSIONS(3)
#undef LAMELLA_OF_DIMENSIONS

using PixelShuffleOptions = F::PixelShuffleFuncOptions;
using FoldOptions = F::FoldFuncOptions;
using UnfoldOptions = F::UnfoldFuncOptions;
LAMELLA_OF_OPTIONS(LocalResponseNorm, LocalResponseNormOptions,
                   F::local_response_norm(input, options), options.size(),
                   ", alpha=", options.alpha(), ", beta=", options.beta(), ", k=", options.k())
LAMELLA_OF_OPTIONS(PixelShuffle, PixelShuffleOptions, F::pixel_shuffle(input, options),
                   "upscale_factor=", options.upscale_factor())
LAMELLA_OF_OPTIONS(PixelUnshuffle, PixelUnshuffleOptions, F::pixel_unshuffle(input, options),
                   "downscale_factor=", options.downscale_factor())
LAMELLA_OF_OPTIONS(Fold, FoldOptions, F::fold(input, options),
                   "output_size=", options.output_size(), ", kernel_size=", options.kernel_size(),
                   ", dilation=", options.dilation(), ", padding=", options.padding(),
                   ", stride=", options.stride())
LAMELLA_OF_OPTIONS(Unfold, UnfoldOptions, F::unfold(input, options),
                   "kernel_size=", options.kernel_size(), ", dilation=", options.dilation(),
                   ", padding=", options.padding(), ", stride=", options.stride())
// The sizes are printed in braces.
LAMELLA_OF_OPTIONS(Unflatten, UnflattenOptions, input.unflatten(options.dim(), options.sizes()),
                   "dim=", options.dim(), ", unflattened_size=", detail::in_braces(options.sizes()))

// Windows of (size - 1) / 2 channels on both sides; the first channel belongs to all of them, as in
// Lua Torch, whose networks this layer supports. The input is [N, C, H, W].
LAMELLA_LAZY class CrossMapLRN2dImplOf
    : public WithOptions<CrossMapLRN2dImplOf<lazy_>, CrossMapLRN2dOptions> {
  LAMELLA_WITH_OPTIONS(CrossMapLRN2d, CrossMapLRN2dOptions, options.size(),
                       ", alpha=", options.alpha(), ", beta=", options.beta(), ", k=", options.k())
  Tensor forward(const Tensor& input) {
    LAMELLA_CHECK_VALUE(input.dim() == 4,
                        "CrossMapLRN2d: expected 'input' to have 4 dimensions, got ", input.dim());
    Tensor place = lamella::arange(input.size(1), TensorOptions(input.device()));
    Tensor is_near = (place.unsqueeze(1) - place).abs().le((options.size() - 1) / 2);
    Tensor window = is_near.logical_or(place.eq(0)).to(input.scalar_type());
    Tensor square = lamella::matmul(window, input.mul(input).flatten(2)).view(input.sizes());
    const double share = options.alpha() / static_cast<double>(options.size());
    return input * square.mul(share).add(options.k()).pow(-options.beta());
  }
};
LAMELLA_LAZY_MODULE(CrossMapLRN2d)

LAMELLA_LAZY class UpsampleImplOf : public Cloneable<UpsampleImplOf<lazy_>> {
 public:
  explicit UpsampleImplOf(const UpsampleOptions& given = {}) : options(given) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override {
    if (options.scale_factor()) {
      detail::show(stream, "torch::nn::Upsample(scale_factor=", *options.scale_factor());
    } else {
      detail::show(stream,
                   "torch::nn::Upsample(size=", options.size().value_or(std::vector<int64_t>()));
    }
    detail::show(stream, ", mode=", options.mode(), ")");
  }
  Tensor forward(const Tensor& input) {
    return F::interpolate(input, F::InterpolateFuncOptions()
                                     .size(options.size())
                                     .scale_factor(options.scale_factor())
                                     .mode(options.mode())
                                     .align_corners(options.align_corners()));
  }
  UpsampleOptions options;
};
LAMELLA_LAZY_MODULE(Upsample)

}  // namespace lamella::nn
