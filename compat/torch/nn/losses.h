// The less common losses of lamella::nn, each as a function and as a module.
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

LAMELLA_LAZY Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                         const HingeEmbeddingLossOptions& options = {}) {
  return lamella::hinge_embedding_loss(
      input, target, options.margin(),
      detail::reduction("hinge_embedding_loss", options.reduction()));
}
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
LAMELLA_LAZY Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                                     const LossOptions& options = {}) {
  return lamella::soft_margin_loss(input, target,
                                   detail::reduction("soft_margin_loss", options.reduction()));
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
LAMELLA_LAZY Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                                     const PoissonNLLLossOptions& options = {}) {
  return lamella::poisson_nll_loss(input, target, options.log_input(), options.full(),
                                   options.eps(),
                                   detail::reduction("poisson_nll_loss", options.reduction()));
}
LAMELLA_LAZY Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2,
                                        const Tensor& target,
                                        const MarginRankingLossOptions& options = {}) {
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

}  // namespace lamella::nn
