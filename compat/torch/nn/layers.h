// The modules of lamella::nn with parameters: Linear, Bilinear, convolutions, norms. For equal
// seeds, the initial parameters equal PyTorch's.
#pragma once
#include "lamella/nn/functional.h"
#include "lamella/nn/init.h"
#include "lamella/nn/module.h"

namespace lamella::nn {

namespace F = functional;

LAMELLA_LAZY class LinearImplOf : public Cloneable<LinearImplOf<lazy_>> {
 public:
  LinearImplOf(int64_t in_features, int64_t out_features)
      : LinearImplOf(LinearOptions(in_features, out_features)) {}
  explicit LinearImplOf(const LinearOptions& given) : options(given) { reset(); }
  void reset() override {
    weight = this->register_parameter(
        "weight", lamella::empty({options.out_features(), options.in_features()}));
    bias = this->register_parameter(
        "bias", options.bias() ? lamella::empty({options.out_features()}) : Tensor());
    reset_parameters();
  }
  void reset_parameters() {
    init::kaiming_uniform_(weight, std::sqrt(5.0));
    if (!bias.defined()) return;
    double bound = 1 / std::sqrt(static_cast<double>(options.in_features()));
    init::uniform_(bias, -bound, bound);
  }
  LAMELLA_SHOWN("Linear", "in_features=", options.in_features(),
                ", out_features=", options.out_features(), ", bias=", options.bias())
  Tensor forward(const Tensor& input) { return F::linear(input, weight, bias); }

  LinearOptions options;
  Tensor weight, bias;
};
LAMELLA_LAZY_MODULE(Linear)

LAMELLA_LAZY class BilinearImplOf : public Cloneable<BilinearImplOf<lazy_>> {
 public:
  BilinearImplOf(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImplOf(BilinearOptions(in1_features, in2_features, out_features)) {}
  explicit BilinearImplOf(const BilinearOptions& given) : options(given) { reset(); }
  void reset() override {
    const int64_t out = options.out_features();
    weight = this->register_parameter(
        "weight", lamella::empty({out, options.in1_features(), options.in2_features()}));
    bias = this->register_parameter("bias", options.bias() ? lamella::empty({out}) : Tensor());
    reset_parameters();
  }
  void reset_parameters() {
    const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
    init::uniform_(weight, -bound, bound);
    if (bias.defined()) init::uniform_(bias, -bound, bound);
  }
  LAMELLA_SHOWN("Bilinear", "in1_features=", options.in1_features(),
                ", in2_features=", options.in2_features(),
                ", out_features=", options.out_features(), ", bias=", options.bias())
  Tensor forward(const Tensor& input1, const Tensor& input2) {
    return F::bilinear(input1, input2, weight, bias);
  }
  BilinearOptions options;
  Tensor weight, bias;
};
LAMELLA_LAZY_MODULE(Bilinear)

// A convolution over D dimensions, or its transpose if `transposed`.
template <size_t D, bool transposed, class Derived>
class ConvBase : public Cloneable<Derived> {
 public:
  ConvBase(int64_t in_channels, int64_t out_channels, Each<D> kernel_size)
      : ConvBase(ConvOptions<D>(in_channels, out_channels, kernel_size)) {}
  explicit ConvBase(const ConvOptions<D>& given) : options(given) { reset(); }
  void reset() override {
    LAMELLA_CHECK_VALUE(options.groups() > 0 && options.in_channels() % options.groups() == 0 &&
                            options.out_channels() % options.groups() == 0,
                        "Conv: expected 'in_channels' and 'out_channels' to be multiples of "
                        "'groups', got ",
                        options.in_channels(), ", ", options.out_channels(), " and ",
                        options.groups());
    for (size_t i = 0; i < D; ++i) {
      LAMELLA_CHECK_VALUE(
          options.padding().word() == nullptr ||
              std::string_view(options.padding().word()) != "same" || options.stride()[i] == 1,
          "Conv: expected 'stride' to be 1 for the padding 'same', got ", options.stride()[i]);
    }
    int64_t from = options.in_channels(), to = options.out_channels();
    std::vector<int64_t> shape = transposed ? std::vector<int64_t>{from, to / options.groups()}
                                            : std::vector<int64_t>{to, from / options.groups()};
    for (size_t i = 0; i < D; ++i) shape.push_back(options.kernel_size()[i]);
    weight = this->register_parameter("weight", lamella::empty(shape));
    bias = this->register_parameter("bias", options.bias() ? lamella::empty({to}) : Tensor());
    reset_parameters();
  }
  void reset_parameters() {
    init::kaiming_uniform_(weight, std::sqrt(5.0));
    if (!bias.defined()) return;
    auto fan_in = static_cast<double>(init::_calculate_fan_in_and_fan_out(weight).first);
    if (fan_in > 0) init::uniform_(bias, -1 / std::sqrt(fan_in), 1 / std::sqrt(fan_in));
  }

  void pretty_print(std::ostream& stream) const override {
    const char* name = transposed ? "ConvTranspose" : "Conv";
    detail::show(stream, "torch::nn::", name, D, "d(", options.in_channels(), ", ",
                 options.out_channels(), ", kernel_size=", detail::shown(options.kernel_size()),
                 ", stride=", detail::shown(options.stride()));
    auto other = [&](const char* what, const Each<D>& value, int64_t usual) {
      for (size_t i = 0; i < D; ++i) {
        if (value[i] != usual) return detail::show(stream, what, detail::shown(value));
      }
    };
    if (options.padding().word() != nullptr) {
      detail::show(stream, ", padding=", Word{options.padding().word()});
    } else {
      other(", padding=", options.padding().numbers(), 0);
    }
    other(", dilation=", options.dilation(), 1);
    other(", output_padding=", options.output_padding(), 0);
    if (options.groups() != 1) detail::show(stream, ", groups=", options.groups());
    if (!options.bias()) detail::show(stream, ", bias=false");
    if (!(options.padding_mode() == kZeros)) {
      detail::show(stream, ", padding_mode=", options.padding_mode());
    }
    detail::show(stream, ")");
  }

  ConvOptions<D> options;
  Tensor weight, bias;

 protected:
  F::ConvFuncOptions<D> told() const {
    return F::ConvFuncOptions<D>()
        .bias(bias)
        .stride(options.stride())
        .padding(options.padding())
        .output_padding(options.output_padding())
        .dilation(options.dilation())
        .groups(options.groups());
  }
  // The input with an explicit margin, where padding_mode is not zeros.
  Tensor padded(const Tensor& input, F::ConvFuncOptions<D>& told) const {
    if (options.padding_mode() == kZeros) return input;
    LAMELLA_CHECK_VALUE(options.padding().word() == nullptr,
                        "Conv: expected 'padding' to be numbers for padding_mode ",
                        options.padding_mode(), ", got ", options.padding().word());
    std::vector<int64_t> margins;
    for (size_t i = D; i-- > 0;) {
      margins.insert(margins.end(), 2, options.padding().numbers()[i]);
    }
    told.padding(0);
    return F::pad(input, F::PadFuncOptions(margins).mode(options.padding_mode()));
  }
};
#define LAMELLA_CONV(D)                                                                      \
  using Conv##D##dOptions = ConvOptions<D>;                                                  \
  using ConvTranspose##D##dOptions = ConvOptions<D>;                                         \
  LAMELLA_LAZY class Conv##D##dImplOf : public ConvBase<D, false, Conv##D##dImplOf<lazy_>> { \
    using Base = ConvBase<D, false, Conv##D##dImplOf>;                                       \
                                                                                             \
   public:                                                                                   \
    using Base::Base;                                                                        \
    Tensor forward(const Tensor& input) {                                                    \
      auto how = this->told();                                                               \
      Tensor wide = this->padded(input, how);                                                \
      return F::conv##D##d(wide, this->weight, how);                                         \
    }                                                                                        \
  };                                                                                         \
  LAMELLA_LAZY_MODULE(Conv##D##d)                                                            \
  LAMELLA_LAZY class ConvTranspose##D##dImplOf                                               \
      : public ConvBase<D, true, ConvTranspose##D##dImplOf<lazy_>> {                         \
    using Base = ConvBase<D, true, ConvTranspose##D##dImplOf>;                               \
                                                                                             \
   public:                                                                                   \
    using Base::Base;                                                                        \
    Tensor forward(const Tensor& input) {                                                    \
      return F::conv_transpose##D##d(input, this->weight, this->told());                     \
    }                                                                                        \
  };                                                                                         \
  LAMELLA_LAZY_MODULE(ConvTranspose##D##d)
LAMELLA_CONV(1)
LAMELLA_CONV(2)
LAMELLA_CONV(3)
#undef LAMELLA_CONV

// The base of layers that normalize channels: weight, bias and running statistics.
template <class Derived, class Options>
class ChannelNormBase : public Cloneable<Derived> {
 public:
  explicit ChannelNormBase(const Options& given) : options(given) { reset(); }
  void reset() override {
    bool affine = options.affine(), tracks = options.track_running_stats();
    auto make = [&](bool there) {
      return there ? lamella::empty({options.num_features()}) : Tensor();
    };
    weight = this->register_parameter("weight", make(affine));
    bias = this->register_parameter("bias", make(affine));
    running_mean = this->register_buffer("running_mean", make(tracks));
    running_var = this->register_buffer("running_var", make(tracks));
    num_batches_tracked = this->register_buffer(
        "num_batches_tracked", tracks ? lamella::zeros({}, TensorOptions(kLong)) : Tensor());
    reset_parameters();
  }
  void reset_running_stats() {
    if (!running_mean.defined()) return;
    running_mean.zero_();
    running_var.fill_(1);
    num_batches_tracked.zero_();
  }
  void reset_parameters() {
    reset_running_stats();
    if (!weight.defined()) return;
    init::ones_(weight);
    init::zeros_(bias);
  }

  Options options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

// Normalizes each channel over the batch; inputs have `least` to `most` dimensions.
template <int64_t least, int64_t most, class Derived>
class BatchNormBase : public ChannelNormBase<Derived, BatchNormOptions> {
  using Base = ChannelNormBase<Derived, BatchNormOptions>;

 public:
  using Base::Base, Base::running_var, Base::weight;
  using Base::bias, Base::num_batches_tracked, Base::options, Base::running_mean;
  Tensor forward(const Tensor& input) {
    LAMELLA_CHECK(input.dim() >= least && input.dim() <= most,
                  "BatchNorm: expected 'input' to have ", least, " to ", most, " dimensions, got ",
                  input.dim());
    std::optional<double> momentum = options.momentum();
    bool train = this->is_training();
    if (train && num_batches_tracked.defined()) {
      num_batches_tracked.add_(1);
      if (!momentum) momentum = 1 / num_batches_tracked.item().template to<double>();
    }
    return F::batch_norm(input, running_mean, running_var,
                         F::BatchNormFuncOptions()
                             .weight(weight)
                             .bias(bias)
                             .training(train || !running_mean.defined())
                             .momentum(momentum)
                             .eps(options.eps()));
  }
};
// Normalizes each channel of each example; inputs have `dims` dimensions, or one less without a
// batch.
template <int64_t dims, class Derived>
class InstanceNormBase : public ChannelNormBase<Derived, InstanceNormOptions> {
  using Base = ChannelNormBase<Derived, InstanceNormOptions>;

 public:
  using Base::Base, Base::bias, Base::options, Base::running_mean, Base::running_var, Base::weight;
  Tensor forward(const Tensor& input) {
    LAMELLA_CHECK(input.dim() == dims || input.dim() == dims - 1,
                  "InstanceNorm: expected 'input' to have ", dims - 1, " or ", dims,
                  " dimensions, got ", input.dim());
    const bool is_one = input.dim() == dims - 1;
    Tensor normal =
        F::instance_norm(is_one ? input.unsqueeze(0) : input,
                         F::InstanceNormFuncOptions()
                             .running_mean(running_mean)
                             .running_var(running_var)
                             .weight(weight)
                             .bias(bias)
                             .use_input_stats(this->is_training() || !options.track_running_stats())
                             .momentum(options.momentum())
                             .eps(options.eps()));
    return is_one ? normal.squeeze(0) : normal;
  }
};
// Defines a norm of channels: `momentum` prints the option of that name, and the rest are the
// dimensions of inputs.
#define LAMELLA_CHANNEL_NORM(Name, D, momentum, ...)                                              \
  using Name##D##dOptions = Name##Options;                                                        \
  LAMELLA_LAZY class Name##D##dImplOf : public Name##Base<__VA_ARGS__, Name##D##dImplOf<lazy_>> { \
    using Base = Name##Base<__VA_ARGS__, Name##D##dImplOf>;                                       \
                                                                                                  \
   public:                                                                                        \
    using Base::Base;                                                                             \
    explicit Name##D##dImplOf(int64_t num_features) : Base(Name##Options(num_features)) {}        \
    LAMELLA_SHOWN(#Name #D "d", this->options.num_features(), ", eps=", this->options.eps(),      \
                  ", momentum=", this->options.momentum, ", affine=", this->options.affine(),     \
                  ", track_running_stats=", this->options.track_running_stats())                  \
  };                                                                                              \
  LAMELLA_LAZY_MODULE(Name##D##d)
LAMELLA_CHANNEL_NORM(BatchNorm, 1, momentum().value_or(0), 2, 3)
LAMELLA_CHANNEL_NORM(BatchNorm, 2, momentum().value_or(0), 4, 4)
LAMELLA_CHANNEL_NORM(BatchNorm, 3, momentum().value_or(0), 5, 5)
LAMELLA_CHANNEL_NORM(InstanceNorm, 1, momentum(), 3)
LAMELLA_CHANNEL_NORM(InstanceNorm, 2, momentum(), 4)
LAMELLA_CHANNEL_NORM(InstanceNorm, 3, momentum(), 5)
#undef LAMELLA_CHANNEL_NORM

// The base of layers that normalize each example: a weight of ones and a bias of zeros. `shape_of`
// gives their shape from the options, or nullopt for a layer without them.
template <class Derived, class Options,
          std::optional<std::vector<int64_t>> shape_of(const Options&)>
class ExampleNormBase : public Cloneable<Derived> {
 public:
  explicit ExampleNormBase(const Options& given) : options(given) { reset(); }
  void reset() override {
    const std::optional<std::vector<int64_t>> shape = shape_of(options);
    auto make = [&] { return shape ? lamella::empty(*shape) : Tensor(); };
    weight = this->register_parameter("weight", make());
    bias = this->register_parameter("bias", make());
    reset_parameters();
  }
  void reset_parameters() {
    if (!weight.defined()) return;
    init::ones_(weight);
    init::zeros_(bias);
  }

  Options options;
  Tensor weight, bias;
};
namespace detail {
LAMELLA_LAZY std::optional<std::vector<int64_t>> layer_norm_shape(const LayerNormOptions& options) {
  if (!options.elementwise_affine()) return std::nullopt;
  return options.normalized_shape();
}
LAMELLA_LAZY std::optional<std::vector<int64_t>> group_norm_shape(const GroupNormOptions& options) {
  if (!options.affine()) return std::nullopt;
  return std::vector<int64_t>{options.num_channels()};
}
}  // namespace detail

LAMELLA_LAZY class LayerNormImplOf
    : public ExampleNormBase<LayerNormImplOf<lazy_>, LayerNormOptions,
                             detail::layer_norm_shape<lazy_>> {
  using Base = ExampleNormBase<LayerNormImplOf, LayerNormOptions, detail::layer_norm_shape<lazy_>>;

 public:
  using Base::Base;
  explicit LayerNormImplOf(std::vector<int64_t> shape) : Base(LayerNormOptions(std::move(shape))) {}
  LAMELLA_SHOWN("LayerNorm", this->options.normalized_shape(), ", eps=", this->options.eps(),
                ", elementwise_affine=", this->options.elementwise_affine())
  Tensor forward(const Tensor& input) {
    return F::layer_norm(input, F::LayerNormFuncOptions(this->options.normalized_shape())
                                    .weight(this->weight)
                                    .bias(this->bias)
                                    .eps(this->options.eps()));
  }
};
LAMELLA_LAZY_MODULE(LayerNorm)

LAMELLA_LAZY class GroupNormImplOf
    : public ExampleNormBase<GroupNormImplOf<lazy_>, GroupNormOptions,
                             detail::group_norm_shape<lazy_>> {
  using Base = ExampleNormBase<GroupNormImplOf, GroupNormOptions, detail::group_norm_shape<lazy_>>;

 public:
  using Base::Base;
  GroupNormImplOf(int64_t num_groups, int64_t num_channels)
      : Base(GroupNormOptions(num_groups, num_channels)) {}
  LAMELLA_SHOWN("GroupNorm", this->options.num_groups(), ", ", this->options.num_channels(),
                ", eps=", this->options.eps(), ", affine=", this->options.affine())
  Tensor forward(const Tensor& input) {
    return F::group_norm(input, F::GroupNormFuncOptions(this->options.num_groups())
                                    .weight(this->weight)
                                    .bias(this->bias)
                                    .eps(this->options.eps()));
  }
};
LAMELLA_LAZY_MODULE(GroupNorm)

}  // namespace lamella::nn
