// Losses with margins, of labels and of sequences, each as a function and as a module; distances,
// and the adaptive softmax.
#pragma once
#include <functional>

#include "lamella/nn/modules.h"

namespace lamella::nn {

// ---- Options -----------------------------------------------------------------------------------

// The options of a loss that has a margin and a reduction.
#define LAMELLA_MARGIN_OPTIONS(Name, value)                          \
  struct Name##Options {                                             \
    Name##Options(Word reduction = kMean) : reduction_(reduction) {} \
    Name##Options(double margin) : margin_(margin) {}                \
    LAMELLA_OPTION(double, margin) = value;                          \
    LAMELLA_OPTION(Word, reduction) = kMean;                         \
  };                                                                 \
  namespace functional {                                             \
  using Name##FuncOptions = Name##Options;                           \
  }
LAMELLA_MARGIN_OPTIONS(HingeEmbeddingLoss, 1.0)
LAMELLA_MARGIN_OPTIONS(CosineEmbeddingLoss, 0.0)
LAMELLA_MARGIN_OPTIONS(MarginRankingLoss, 0.0)
#undef LAMELLA_MARGIN_OPTIONS

struct MultiMarginLossOptions {
  LAMELLA_OPTION(int64_t, p) = 1;
  LAMELLA_OPTION(double, margin) = 1;
  LAMELLA_OPTION(Tensor, weight);
  LAMELLA_OPTION(Word, reduction) = kMean;
};
struct TripletMarginLossOptions {
  LAMELLA_OPTION(double, margin) = 1;
  LAMELLA_OPTION(double, p) = 2;
  LAMELLA_OPTION(double, eps) = 1e-6;
  LAMELLA_OPTION(bool, swap) = false;
  LAMELLA_OPTION(Word, reduction) = kMean;
};
struct TripletMarginWithDistanceLossOptions {
  using reduction_t = Word;
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  LAMELLA_OPTION(std::optional<distance_function_t>, distance_function);  // pairwise_distance
  LAMELLA_OPTION(double, margin) = 1;
  LAMELLA_OPTION(bool, swap) = false;
  LAMELLA_OPTION(Word, reduction) = kMean;
};
struct CTCLossOptions {
  LAMELLA_OPTION(int64_t, blank) = 0;
  LAMELLA_OPTION(Word, reduction) = kMean;
  LAMELLA_OPTION(bool, zero_infinity) = false;
};
struct PoissonNLLLossOptions {
  LAMELLA_OPTION(bool, log_input) = true;
  LAMELLA_OPTION(bool, full) = false;
  LAMELLA_OPTION(double, eps) = 1e-8;
  LAMELLA_OPTION(Word, reduction) = kMean;
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

using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using MultilabelMarginLossFuncOptions = LossOptions;
using SoftMarginLossFuncOptions = LossOptions;
using MultilabelSoftMarginLossFuncOptions = LossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;

namespace detail {
LAMELLA_LAZY Tensor reduced(const char* op, const Tensor& loss, Word word) {
  const int64_t how = reduction(op, word);
  return how == 0 ? loss : how == 1 ? loss.mean() : loss.sum();
}
}  // namespace detail

LAMELLA_LOSS_FUNCTION(hinge_embedding_loss, HingeEmbeddingLossOptions,
                      hinge_embedding_loss(input, target, options.margin(), reduction))
LAMELLA_LOSS_FUNCTION(soft_margin_loss, LossOptions, soft_margin_loss(input, target, reduction))
LAMELLA_LOSS_FUNCTION(poisson_nll_loss, PoissonNLLLossOptions,
                      poisson_nll_loss(input, target, options.log_input(), options.full(),
                                       options.eps(), reduction))
#undef LAMELLA_LOSS_FUNCTION
LAMELLA_LAZY Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                      const MultiMarginLossOptions& options = {}) {
  static const auto op =
      detail::find<Tensor, const Tensor&, const Tensor&, const Scalar&, const Scalar&,
                   const std::optional<Tensor>&, int64_t>("aten::multi_margin_loss");
  return op.call(input, target, options.p(), options.margin(), detail::maybe(options.weight()),
                 detail::reduction("multi_margin_loss", options.reduction()));
}
LAMELLA_LAZY Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2,
                                          const Tensor& target,
                                          const CosineEmbeddingLossOptions& options = {}) {
  return lamella::cosine_embedding_loss(
      input1, input2, target, options.margin(),
      detail::reduction("cosine_embedding_loss", options.reduction()));
}
LAMELLA_LAZY Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                           const LossOptions& options = {}) {
  static const auto op =
      detail::find<Tensor, const Tensor&, const Tensor&, int64_t>("aten::multilabel_margin_loss");
  return op.call(input, target, detail::reduction("multilabel_margin_loss", options.reduction()));
}
// The mean over the classes, the last dimension, of each class's own loss.
LAMELLA_LAZY Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                                const LossOptions& options = {}) {
  Tensor loss =
      -(target * lamella::log_sigmoid(input) + (1 - target) * lamella::log_sigmoid(-input));
  if (options.weight().defined()) loss = loss * options.weight();
  return detail::reduced("multilabel_soft_margin_loss", loss.mean(-1), options.reduction());
}
LAMELLA_LAZY Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                        const Tensor& negative,
                                        const TripletMarginLossOptions& options = {}) {
  return lamella::triplet_margin_loss(
      anchor, positive, negative, options.margin(), options.p(), options.eps(), options.swap(),
      detail::reduction("triplet_margin_loss", options.reduction()));
}
LAMELLA_LAZY Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const TripletMarginWithDistanceLossOptions& options = {}) {
  auto distance = [&](const Tensor& a, const Tensor& b) {
    if (options.distance_function()) return (*options.distance_function())(a, b);
    return lamella::pairwise_distance(a, b);
  };
  Tensor near = distance(anchor, positive), far = distance(anchor, negative);
  if (options.swap()) far = lamella::minimum(far, distance(positive, negative));
  return detail::reduced("triplet_margin_with_distance_loss",
                         lamella::clamp_min(near - far + options.margin(), 0), options.reduction());
}
LAMELLA_LAZY Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                             const Tensor& input_lengths, const Tensor& target_lengths,
                             const CTCLossOptions& options = {}) {
  static const auto op = Dispatcher::singleton()
                             .findSchemaOrThrow("aten::ctc_loss", "Tensor")
                             .typed<Tensor(const Tensor&, const Tensor&, const Tensor&,
                                           const Tensor&, int64_t, int64_t, bool)>();
  return op.call(log_probs, targets, input_lengths, target_lengths, options.blank(),
                 detail::reduction("ctc_loss", options.reduction()), options.zero_infinity());
}
LAMELLA_LAZY Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2,
                                        const Tensor& target,
                                        const MarginRankingLossOptions& options = {}) {
  LAMELLA_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
                "margin_ranking_loss: expected equally many dimensions of all, got ",
                input1.sizes(), ", ", input2.sizes(), " and ", target.sizes());
  return lamella::margin_ranking_loss(
      input1, input2, target, options.margin(),
      detail::reduction("margin_ranking_loss", options.reduction()));
}
// The distances between all pairs of rows, of shape [n * (n - 1) / 2].
LAMELLA_LAZY Tensor pdist(const Tensor& input, double p = 2.0) { return lamella::pdist(input, p); }

}  // namespace functional

// ---- Modules -----------------------------------------------------------------------------------

using MultiLabelMarginLossOptions = LossOptions;
using SoftMarginLossOptions = LossOptions;
using MultiLabelSoftMarginLossOptions = LossOptions;
LAMELLA_LOSS(HingeEmbeddingLoss, hinge_embedding_loss, "margin=", options.margin())
LAMELLA_LOSS(MultiMarginLoss, multi_margin_loss, "p=", options.p(), ", margin=", options.margin(),
             ", weight=", options.weight(), ", reduction=", options.reduction())
LAMELLA_LOSS(MultiLabelMarginLoss, multilabel_margin_loss)
LAMELLA_LOSS(SoftMarginLoss, soft_margin_loss)
LAMELLA_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss)
LAMELLA_LOSS(PoissonNLLLoss, poisson_nll_loss)
LAMELLA_LOSS_OF(CosineEmbeddingLoss,
                (const Tensor& input1, const Tensor& input2, const Tensor& target),
                (input1, input2, target, options), cosine_embedding_loss,
                "margin=", options.margin())
LAMELLA_LOSS_OF(MarginRankingLoss,
                (const Tensor& input1, const Tensor& input2, const Tensor& target),
                (input1, input2, target, options), margin_ranking_loss)
LAMELLA_LOSS_OF(TripletMarginLoss,
                (const Tensor& anchor, const Tensor& positive, const Tensor& negative),
                (anchor, positive, negative, options), triplet_margin_loss,
                "margin=", options.margin(), ", p=", options.p(), ", eps=", options.eps(),
                ", swap=", options.swap())
LAMELLA_LOSS_OF(TripletMarginWithDistanceLoss,
                (const Tensor& anchor, const Tensor& positive, const Tensor& negative),
                (anchor, positive, negative, options), triplet_margin_with_distance_loss,
                "margin=", options.margin(), ", swap=", options.swap())
LAMELLA_LOSS_OF(CTCLoss,
                (const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths),
                (log_probs, targets, input_lengths, target_lengths, options), ctc_loss)

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
    LAMELLA_CHECK_VALUE(options.div_value() != 0,
                        "AdaptiveLogSoftmaxWithLoss: expected 'div_value' to be other than 0");
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
  // input: [N, in_features]; target: [N]; both may lack the first dimension.
  ASMoutput forward(const Tensor& input, const Tensor& target) {
    if (input.dim() == 1 && target.dim() == 0) {
      ASMoutput one = forward(input.unsqueeze(0), target.unsqueeze(0));
      return ASMoutput(one.output.squeeze(0), one.loss);
    }
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
