// Activations of lamella::nn, each as a function and as a module: randomized,
// parametric and thresholding ones, and the dropouts that preserve mean and variance.
#pragma once
#include "lamella/nn/modules.h"

namespace lamella::nn {

// ---- Options -----------------------------------------------------------------------------------

struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT: implicit
  LAMELLA_OPTION(double, lambda);
};
using SoftshrinkOptions = HardshrinkOptions;
struct PReLUOptions {
  PReLUOptions(int64_t num_parameters = 1) : num_parameters_(num_parameters) {}  // NOLINT: implicit
  LAMELLA_OPTION(int64_t, num_parameters);
  LAMELLA_OPTION(double, init) = 0.25;
};
struct RReLUOptions {
  LAMELLA_OPTION(double, lower) = 1.0 / 8;
  LAMELLA_OPTION(double, upper) = 1.0 / 3;
  LAMELLA_OPTION(bool, training) = false;  // for the function; a module has its own mode
  LAMELLA_OPTION(bool, inplace) = false;
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  LAMELLA_OPTION(double, threshold);
  LAMELLA_OPTION(double, value);
  LAMELLA_OPTION(bool, inplace) = false;
};

// ---- Functions ---------------------------------------------------------------------------------

namespace functional {

using HardshrinkFuncOptions = HardshrinkOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using RReLUFuncOptions = RReLUOptions;
using ThresholdFuncOptions = ThresholdOptions;
using SoftminFuncOptions = SoftmaxOptions;
struct AlphaDropoutFuncOptions {
  LAMELLA_OPTION(double, p) = 0.5;
  LAMELLA_OPTION(bool, training) = false;
  LAMELLA_OPTION(bool, inplace) = false;
};
using FeatureAlphaDropoutFuncOptions = AlphaDropoutFuncOptions;
struct GumbelSoftmaxFuncOptions {
  LAMELLA_OPTION(double, tau) = 1;
  LAMELLA_OPTION(bool, hard) = false;
  LAMELLA_OPTION(int, dim) = -1;
};

LAMELLA_LAZY Tensor hardshrink(const Tensor& input, const HardshrinkOptions& options = {}) {
  return lamella::hardshrink(input, options.lambda());
}
LAMELLA_LAZY Tensor softshrink(const Tensor& input, const SoftshrinkOptions& options = {}) {
  return lamella::softshrink(input, options.lambda());
}
LAMELLA_LAZY Tensor threshold(Tensor input, const ThresholdOptions& options) {
  return options.inplace() ? lamella::threshold_(input, options.threshold(), options.value())
                           : lamella::threshold(input, options.threshold(), options.value());
}
LAMELLA_LAZY Tensor rrelu(Tensor input, const RReLUOptions& options = {}) {
  return options.inplace()
             ? lamella::rrelu_(input, options.lower(), options.upper(), options.training())
             : lamella::rrelu(input, options.lower(), options.upper(), options.training());
}
// Dropout for networks of SELU, which preserves mean and variance: alpha_dropout drops elements,
// feature_alpha_dropout whole channels.
#define LAMELLA_ALPHA_DROPOUT(name)                                                     \
  LAMELLA_LAZY Tensor name(Tensor input, const AlphaDropoutFuncOptions& options = {}) { \
    LAMELLA_CHECK_VALUE(options.p() >= 0 && options.p() <= 1,                           \
                        #name ": expected 'p' to be from 0 to 1, got ", options.p());   \
    return options.inplace() ? lamella::name##_(input, options.p(), options.training()) \
                             : lamella::name(input, options.p(), options.training());   \
  }
LAMELLA_ALPHA_DROPOUT(alpha_dropout)
LAMELLA_ALPHA_DROPOUT(feature_alpha_dropout)
#undef LAMELLA_ALPHA_DROPOUT
namespace detail {
LAMELLA_LAZY Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::alpha_dropout(
      std::move(input), AlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
LAMELLA_LAZY Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::feature_alpha_dropout(
      std::move(input), AlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
}  // namespace detail
// E. Jang et al., Categorical Reparameterization with Gumbel-Softmax, 2017. With `hard`, the
// forward values are one-hot and the gradients are those of the soft values.
LAMELLA_LAZY Tensor gumbel_softmax(const Tensor& logits,
                                   const GumbelSoftmaxFuncOptions& options = {}) {
  Tensor waits = lamella::empty_like(logits, TensorOptions(), MemoryFormat::Contiguous);
  Tensor noise = -waits.exponential_().log();
  Tensor soft = ((logits + noise) / options.tau()).softmax(options.dim());
  if (!options.hard()) return soft;
  Tensor most = std::get<1>(soft.max(options.dim(), true));
  Tensor hard = lamella::zeros_like(logits).scatter_(options.dim(), most, 1.0);
  return hard - soft.detach() + soft;
}

}  // namespace functional

// ---- Modules -----------------------------------------------------------------------------------

using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;
using SoftminOptions = SoftmaxOptions;
LAMELLA_OF_OPTIONS(Hardshrink, HardshrinkOptions, F::hardshrink(input, options), options.lambda())
LAMELLA_OF_OPTIONS(Softshrink, SoftshrinkOptions, F::softshrink(input, options), options.lambda())
LAMELLA_OF_INPUT(Tanhshrink, F::tanhshrink(input))
LAMELLA_OF_OPTIONS(Softmin, SoftmaxOptions, F::softmin(input, options), "dim=", options.dim())
LAMELLA_OF_OPTIONS(RReLU, RReLUOptions,
                   F::rrelu(input, RReLUOptions(options).training(this->is_training())),
                   "lower=", options.lower(), ", upper=", options.upper(),
                   detail::inplace_shown(options, ", "))
LAMELLA_OF_OPTIONS(AlphaDropout, DropoutOptions,
                   F::alpha_dropout(input, F::AlphaDropoutFuncOptions()
                                               .p(options.p())
                                               .training(this->is_training())
                                               .inplace(options.inplace())),
                   "p=", options.p(), ", inplace=", options.inplace())
LAMELLA_OF_OPTIONS(FeatureAlphaDropout, DropoutOptions,
                   F::feature_alpha_dropout(input, F::AlphaDropoutFuncOptions()
                                                       .p(options.p())
                                                       .training(this->is_training())
                                                       .inplace(options.inplace())),
                   "p=", options.p(), ", inplace=", options.inplace())

LAMELLA_LAZY class ThresholdImplOf : public WithOptions<ThresholdImplOf<lazy_>, ThresholdOptions> {
  LAMELLA_WITH_OPTIONS(Threshold, ThresholdOptions, "threshold=", options.threshold(),
                       ", value=", options.value(), detail::inplace_shown(options, ", "))
  ThresholdImplOf(double threshold, double value)
      : ThresholdImplOf(ThresholdOptions(threshold, value)) {}
  Tensor forward(const Tensor& input) { return F::threshold(input, options); }
};
LAMELLA_LAZY_MODULE(Threshold)

LAMELLA_LAZY class PReLUImplOf : public Cloneable<PReLUImplOf<lazy_>> {
 public:
  explicit PReLUImplOf(const PReLUOptions& given = {}) : options(given) { reset(); }
  void reset() override {
    weight = this->register_parameter(
        "weight", lamella::full({options.num_parameters()}, Scalar(options.init())));
  }
  LAMELLA_SHOWN("PReLU", "num_parameters=", options.num_parameters())
  Tensor forward(const Tensor& input) { return F::prelu(input, weight); }
  PReLUOptions options;
  Tensor weight;
};
LAMELLA_LAZY_MODULE(PReLU)

// Softmax over the channels of images.
LAMELLA_LAZY class Softmax2dImplOf : public WithOptions<Softmax2dImplOf<lazy_>, NoOptions> {
  LAMELLA_WITH_OPTIONS(Softmax2d, NoOptions)
  Tensor forward(const Tensor& input) {
    LAMELLA_CHECK(input.dim() == 3 || input.dim() == 4,
                  "Softmax2d: expected 'input' to have 3 or 4 dimensions, got ", input.dim());
    return input.softmax(-3);
  }
};
LAMELLA_LAZY_MODULE(Softmax2d)

}  // namespace lamella::nn
