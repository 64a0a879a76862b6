// The less common layers of lamella::nn with parameters, and distances as modules.
#pragma once
#include "lamella/nn/modules.h"

namespace lamella::nn {

// ---- Options -----------------------------------------------------------------------------------

struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  LAMELLA_OPTION(int64_t, in1_features);
  LAMELLA_OPTION(int64_t, in2_features);
  LAMELLA_OPTION(int64_t, out_features);
  LAMELLA_OPTION(bool, bias) = true;
};
struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  LAMELLA_OPTION(int64_t, num_embeddings);
  LAMELLA_OPTION(int64_t, embedding_dim);
  LAMELLA_OPTION(std::optional<double>, max_norm);
  LAMELLA_OPTION(double, norm_type) = 2;
  LAMELLA_OPTION(bool, scale_grad_by_freq) = false;
  LAMELLA_OPTION(Word, mode) = kMean;  // or kSum, kMax
  LAMELLA_OPTION(bool, sparse) = false;
  LAMELLA_OPTION(Tensor, _weight);
  LAMELLA_OPTION(bool, include_last_offset) = false;
  LAMELLA_OPTION(std::optional<int64_t>, padding_idx);
};
struct EmbeddingBagFromPretrainedOptions {
  LAMELLA_OPTION(bool, freeze) = true;
  LAMELLA_OPTION(std::optional<double>, max_norm);
  LAMELLA_OPTION(double, norm_type) = 2;
  LAMELLA_OPTION(bool, scale_grad_by_freq) = false;
  LAMELLA_OPTION(Word, mode) = kMean;
  LAMELLA_OPTION(bool, sparse) = false;
  LAMELLA_OPTION(bool, include_last_offset) = false;
  LAMELLA_OPTION(std::optional<int64_t>, padding_idx);
};
struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes,
                                    std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  LAMELLA_OPTION(int64_t, in_features);
  LAMELLA_OPTION(int64_t, n_classes);
  LAMELLA_OPTION(std::vector<int64_t>, cutoffs);
  LAMELLA_OPTION(double, div_value) = 4;
  LAMELLA_OPTION(bool, head_bias) = false;
};

// ---- Functions ---------------------------------------------------------------------------------

namespace functional {

struct EmbeddingBagFuncOptions {
  LAMELLA_OPTION(Tensor, offsets);
  LAMELLA_OPTION(std::optional<double>, max_norm);
  LAMELLA_OPTION(double, norm_type) = 2;
  LAMELLA_OPTION(bool, scale_grad_by_freq) = false;
  LAMELLA_OPTION(Word, mode) = kMean;
  LAMELLA_OPTION(bool, sparse) = false;
  LAMELLA_OPTION(Tensor, per_sample_weights);
  LAMELLA_OPTION(bool, include_last_offset) = false;
  LAMELLA_OPTION(std::optional<int64_t>, padding_idx);
};

LAMELLA_LAZY Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                             const Tensor& bias = {}) {
  static const auto op = detail::find<Tensor, const Tensor&, const Tensor&, const Tensor&,
                                      const std::optional<Tensor>&>("aten::bilinear");
  return op.call(input1, input2, weight, detail::maybe(bias));
}
// The sum, mean or maximum of the rows of `weight` that each bag indexes. A bag is a row of a
// matrix `input`, or the part of a vector `input` that begins at one of the offsets.
LAMELLA_LAZY Tensor embedding_bag(const Tensor& input, const Tensor& weight,
                                  const EmbeddingBagFuncOptions& options = {}) {
  const Word mode = options.mode();
  LAMELLA_CHECK_VALUE(mode == kSum || mode == kMean || mode == kMax,
                      "embedding_bag: expected 'mode' to be sum, mean or max, got ", mode);
  LAMELLA_CHECK_VALUE(!(mode == kMax) || !(options.sparse() || options.scale_grad_by_freq()),
                      "embedding_bag: expected 'sparse' and 'scale_grad_by_freq' to be false with "
                      "mode max");
  LAMELLA_CHECK_VALUE(input.dim() == 1 || input.dim() == 2,
                      "embedding_bag: expected 'input' to have 1 or 2 dimensions, got ",
                      input.dim());
  LAMELLA_CHECK_VALUE(
      options.offsets().defined() == (input.dim() == 1),
      "embedding_bag: expected 'offsets' for an 'input' of 1 dimension alone, which "
      "has ",
      input.dim());
  detail::shorten(weight, input, options.max_norm(), options.norm_type());
  Tensor words = input, starts = options.offsets(), shares = options.per_sample_weights();
  if (input.dim() == 2) {
    starts = lamella::arange(0, input.numel(), input.size(1), TensorOptions(kLong));
    words = input.reshape({-1});
    if (shares.defined()) shares = shares.reshape({-1});
  }
  using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
  static const auto op =
      Dispatcher::singleton()
          .findSchemaOrThrow("aten::embedding_bag", "padding_idx")
          .typed<Four(const Tensor&, const Tensor&, const Tensor&, bool, int64_t, bool,
                      const std::optional<Tensor>&, bool, std::optional<int64_t>)>();
  return std::get<0>(op.call(weight, words, starts, options.scale_grad_by_freq(),
                             mode == kSum    ? 0
                             : mode == kMean ? 1
                                             : 2,
                             options.sparse(), detail::maybe(shares), options.include_last_offset(),
                             options.padding_idx()));
}

}  // namespace functional

// ---- Modules -----------------------------------------------------------------------------------

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
#define LAMELLA_INSTANCE_NORM(D, dims)                                                    \
  using InstanceNorm##D##dOptions = InstanceNormOptions;                                  \
  LAMELLA_LAZY class InstanceNorm##D##dImplOf                                             \
      : public InstanceNormBase<dims, InstanceNorm##D##dImplOf<lazy_>> {                  \
    using Base = InstanceNormBase<dims, InstanceNorm##D##dImplOf>;                        \
                                                                                          \
   public:                                                                                \
    using Base::Base;                                                                     \
    explicit InstanceNorm##D##dImplOf(int64_t num_features)                               \
        : Base(InstanceNormOptions(num_features)) {}                                      \
    LAMELLA_SHOWN("InstanceNorm" #D "d", this->options.num_features(),                    \
                  ", eps=", this->options.eps(), ", momentum=", this->options.momentum(), \
                  ", affine=", this->options.affine(),                                    \
                  ", track_running_stats=", this->options.track_running_stats())          \
  };                                                                                      \
  LAMELLA_LAZY_MODULE(InstanceNorm##D##d)
LAMELLA_INSTANCE_NORM(1, 3)
LAMELLA_INSTANCE_NORM(2, 4)
LAMELLA_INSTANCE_NORM(3, 5)
#undef LAMELLA_INSTANCE_NORM

LAMELLA_LAZY class EmbeddingBagImplOf : public Cloneable<EmbeddingBagImplOf<lazy_>> {
 public:
  EmbeddingBagImplOf(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImplOf(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingBagImplOf(const EmbeddingBagOptions& given) : options(given) { reset(); }
  void reset() override {
    weight = this->register_parameter("weight", detail::embedding_table("EmbeddingBag", options));
    if (!options._weight().defined()) reset_parameters();
  }
  void reset_parameters() { detail::draw_embedding(weight, options.padding_idx()); }
  void pretty_print(std::ostream& stream) const override {
    detail::show(stream, "torch::nn::EmbeddingBag(num_embeddings=", options.num_embeddings(),
                 ", embedding_dim=", options.embedding_dim());
    detail::show_embedding(stream, options);
    if (!(options.mode() == kMean)) detail::show(stream, ", mode=", options.mode());
    if (options.include_last_offset()) detail::show(stream, ", include_last_offset=true");
    if (options.padding_idx()) detail::show(stream, ", padding_idx=", *options.padding_idx());
    detail::show(stream, ")");
  }
  Tensor forward(const Tensor& input, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}) {
    return F::embedding_bag(input, weight,
                            F::EmbeddingBagFuncOptions()
                                .offsets(offsets)
                                .max_norm(options.max_norm())
                                .norm_type(options.norm_type())
                                .scale_grad_by_freq(options.scale_grad_by_freq())
                                .mode(options.mode())
                                .sparse(options.sparse())
                                .per_sample_weights(per_sample_weights)
                                .include_last_offset(options.include_last_offset())
                                .padding_idx(options.padding_idx()));
  }
  EmbeddingBagOptions options;
  Tensor weight;
};
LAMELLA_LAZY class EmbeddingBagOf : public ModuleHolder<EmbeddingBagImplOf<lazy_>> {
 public:
  using ModuleHolder<EmbeddingBagImplOf<lazy_>>::ModuleHolder;
  // A layer over an existing table, which is frozen unless `freeze` is false.
  static EmbeddingBagOf from_pretrained(const Tensor& embeddings,
                                        const EmbeddingBagFromPretrainedOptions& options = {}) {
    LAMELLA_CHECK_VALUE(embeddings.dim() == 2,
                        "EmbeddingBag: expected 'embeddings' to have 2 dimensions, got ",
                        embeddings.dim());
    EmbeddingBagOf made(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                            .max_norm(options.max_norm())
                            .norm_type(options.norm_type())
                            .scale_grad_by_freq(options.scale_grad_by_freq())
                            .mode(options.mode())
                            .sparse(options.sparse())
                            ._weight(embeddings)
                            .include_last_offset(options.include_last_offset())
                            .padding_idx(options.padding_idx()));
    made->weight.set_requires_grad(!options.freeze());
    return made;
  }
};
using EmbeddingBagImpl = EmbeddingBagImplOf<>;
using EmbeddingBag = EmbeddingBagOf<>;

using CosineSimilarityOptions = F::CosineSimilarityFuncOptions;
using PairwiseDistanceOptions = F::PairwiseDistanceFuncOptions;
LAMELLA_LOSS_OF(CosineSimilarity, (const Tensor& x1, const Tensor& x2), (x1, x2, options),
                cosine_similarity, "dim=", options.dim(), ", eps=", options.eps())
LAMELLA_LOSS_OF(PairwiseDistance, (const Tensor& x1, const Tensor& x2), (x1, x2, options),
                pairwise_distance, "p=", options.p(), ", eps=", options.eps(),
                ", keepdim=", options.keepdim())

// The log probability of each target, and the loss: the mean of their negatives.
struct ASMoutput {
  ASMoutput(Tensor output_, double loss_) : output(std::move(output_)), loss(loss_) {}
  Tensor output;
  double loss;
};

// Classes sorted by frequency, split into a head and clusters: the head has the first cutoffs[0]
// classes and one entry for each cluster; cluster i projects to in_features / div_value^(i + 1)
// features. E. Grave et al., Efficient softmax approximation for GPUs, 2017.
LAMELLA_LAZY class AdaptiveLogSoftmaxWithLossImplOf
    : public Cloneable<AdaptiveLogSoftmaxWithLossImplOf<lazy_>> {
  LAMELLA_PART(AdaptiveLogSoftmaxWithLossImplOf, Linear);
  LAMELLA_PART(AdaptiveLogSoftmaxWithLossImplOf, LinearImpl);
  LAMELLA_PART(AdaptiveLogSoftmaxWithLossImplOf, ModuleList);
  LAMELLA_PART(AdaptiveLogSoftmaxWithLossImplOf, Sequential);

 public:
  AdaptiveLogSoftmaxWithLossImplOf(int64_t in_features, int64_t n_classes,
                                   std::vector<int64_t> cutoffs)
      : AdaptiveLogSoftmaxWithLossImplOf(
            AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs))) {}
  explicit AdaptiveLogSoftmaxWithLossImplOf(const AdaptiveLogSoftmaxWithLossOptions& given)
      : options(given) {
    reset();
  }
  void reset() override {
    cutoffs = options.cutoffs();
    bool rises = !cutoffs.empty();
    for (size_t i = 0; i < cutoffs.size(); ++i) {
      rises = rises && cutoffs[i] > (i == 0 ? 0 : cutoffs[i - 1]);
    }
    LAMELLA_CHECK_VALUE(rises && cutoffs.back() < options.n_classes(),
                        "AdaptiveLogSoftmaxWithLoss: expected 'cutoffs' to be different whole "
                        "numbers that rise, from 1 to ",
                        options.n_classes() - 1, ", got ", cutoffs);
    cutoffs.push_back(options.n_classes());
    shortlist_size = cutoffs[0];
    n_clusters = static_cast<int64_t>(cutoffs.size()) - 1;
    head_size = shortlist_size + n_clusters;
    head = this->register_module(
        "head", Linear(LinearOptions(options.in_features(), head_size).bias(options.head_bias())));
    tail = this->register_module("tail", ModuleList());
    auto width = static_cast<double>(options.in_features());
    for (size_t i = 0; i + 1 < cutoffs.size(); ++i) {
      width = std::floor(static_cast<double>(options.in_features()) /
                         std::pow(options.div_value(), static_cast<double>(i + 1)));
      const auto inner = static_cast<int64_t>(width);
      tail->push_back(
          Sequential(Linear(LinearOptions(options.in_features(), inner).bias(false)),
                     Linear(LinearOptions(inner, cutoffs[i + 1] - cutoffs[i]).bias(false))));
    }
  }
  void reset_parameters() {
    for (auto& module : this->modules(false)) {
      if (auto* linear = module->template as<LinearImpl>()) linear->reset_parameters();
    }
  }
  LAMELLA_SHOWN_AS("AdaptiveLogSoftmaxWithLoss")
  // input: [N, in_features]; target: [N].
  ASMoutput forward(const Tensor& input, const Tensor& target) {
    LAMELLA_CHECK(input.dim() == 2 && target.dim() == 1 && input.size(0) == target.size(0),
                  "AdaptiveLogSoftmaxWithLoss: expected 'input' [N, in_features] and 'target' [N], "
                  "got ",
                  input.sizes(), " and ", target.sizes());
    Tensor wrong = target.lt(0).logical_or(target.ge(options.n_classes()));
    LAMELLA_CHECK(!wrong.any().item().template to<bool>(),
                  "AdaptiveLogSoftmaxWithLoss: expected 'target' to be in [0, ",
                  options.n_classes() - 1, "]");
    Tensor in_head = target.clone();
    Tensor inside = lamella::zeros({target.size(0)}, input.options());
    for (size_t i = 0; i + 1 < cutoffs.size(); ++i) {
      Tensor places = target.ge(cutoffs[i]).logical_and(target.lt(cutoffs[i + 1])).nonzero();
      places = places.squeeze(1);
      if (places.numel() == 0) continue;
      in_head.index_fill_(0, places, shortlist_size + static_cast<int64_t>(i));
      Tensor scores = F::log_softmax(cluster(i, input.index_select(0, places)), 1);
      Tensor classes = (target.index_select(0, places) - cutoffs[i]).unsqueeze(1);
      inside = inside.index_add(0, places, scores.gather(1, classes).squeeze(1));
    }
    Tensor first = F::log_softmax(head(input), 1).gather(1, in_head.unsqueeze(1)).squeeze(1);
    Tensor output = first + inside;
    return ASMoutput(output, -output.mean().item().template to<double>());
  }
  // The log probabilities of all classes, [N, n_classes].
  Tensor log_prob(const Tensor& input) {
    Tensor first = F::log_softmax(head(input), 1);
    std::vector<Tensor> parts{first.slice(1, 0, shortlist_size)};
    for (size_t i = 0; i + 1 < cutoffs.size(); ++i) {
      parts.push_back(F::log_softmax(cluster(i, input), 1) +
                      first.select(1, shortlist_size + static_cast<int64_t>(i)).unsqueeze(1));
    }
    return lamella::cat(parts, 1);
  }
  // The most probable class of each row.
  Tensor predict(const Tensor& input) { return lamella::argmax(log_prob(input), 1); }

  AdaptiveLogSoftmaxWithLossOptions options;
  std::vector<int64_t> cutoffs;
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head{nullptr};
  ModuleList tail;

 private:
  Tensor cluster(size_t i, const Tensor& input) {
    return tail->template at<Sequential>(i).forward(input);
  }
};
LAMELLA_LAZY_MODULE(AdaptiveLogSoftmaxWithLoss)

}  // namespace lamella::nn
