// Losses made of other operators.
#include <cmath>

#include "lamella/kernels/native.h"
#include "lamella/kernels/reduction.h"

namespace lamella::native {

namespace {
bool has(const std::optional<Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }
}  // namespace

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return apply_reduction("l1_loss", self.sub(target).abs(), reduction);
}
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  Tensor values = log_target ? target.exp().mul(target.sub(self))
                             : lamella::xlogy(target, target).sub(target.mul(self));
  return apply_reduction("kl_div", values, reduction);
}
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const std::optional<Tensor>& weight,
                                        const std::optional<Tensor>& pos_weight,
                                        int64_t reduction) {
  const char* op = "binary_cross_entropy_with_logits";
  LAMELLA_CHECK(self.sizes().equals(target.sizes()), op, ": expected 'target' to be of shape ",
                self.sizes(), ", got ", target.sizes());
  // (1 - t) x - (1 + (p - 1) t) log sigmoid(x)
  Tensor certainty = lamella::log_sigmoid(self);
  if (has(pos_weight)) certainty = certainty.mul(pos_weight->sub(1).mul(target).add(1));
  Tensor values = lamella::rsub(target, 1).mul(self).sub(certainty);
  if (has(weight)) values = values.mul(*weight);
  return apply_reduction(op, values, reduction);
}
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  Tensor zero = lamella::zeros({}, self.options());
  Tensor apart = lamella::rsub(self, margin).clamp_min(0);
  Tensor values =
      lamella::where(target.ne(1), apart, zero).add(lamella::where(target.ne(-1), self, zero));
  return apply_reduction("hinge_embedding_loss", values, reduction);
}
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  Tensor apart = target.mul(input2.sub(input1)).add(margin).clamp_min(0);
  return apply_reduction("margin_ranking_loss", apart, reduction);
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  const char* op = "cosine_embedding_loss";
  int64_t rank = target.dim();
  LAMELLA_CHECK(
      (rank == 0 || rank == 1) && input1.dim() == rank + 1 && input2.dim() == rank + 1, op,
      ": expected 'input1' and 'input2' to have one dimension more than 'target', which has at ",
      "most 1, got ", input1.sizes(), ", ", input2.sizes(), " and ", target.sizes());
  constexpr double kLeast = 1e-12;
  auto along = [&](const Tensor& product) { return product.sum(IntArrayRef(rank)); };
  Tensor lengths = along(input1.mul(input1)).add(kLeast).mul(along(input2.mul(input2)).add(kLeast));
  Tensor cosine = along(input1.mul(input2)).div(lengths.sqrt());
  Tensor zero = lamella::zeros({}, cosine.options());
  Tensor values = lamella::where(target.eq(1), lamella::rsub(cosine, 1), zero)
                      .add(lamella::where(target.eq(-1), cosine.sub(margin).clamp_min(0), zero));
  return apply_reduction(op, values, reduction);
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  Tensor values =
      log_input ? input.exp().sub(target.mul(input)) : input.sub(target.mul(input.add(eps).log()));
  if (full) {
    // Stirling's approximation of log(target!).
    Tensor stirling = target.mul(target.log()).sub(target).add(target.mul(2 * M_PI).log().mul(0.5));
    values = values.add(stirling.masked_fill(target.le(1), 0));
  }
  return apply_reduction("poisson_nll_loss", values, reduction);
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  broadcast_shapes(x1.sizes(), x2.sizes(), "pairwise_distance", "x2");
  Tensor difference = x1.sub(x2).add(eps);
  return lamella::norm(difference, p, IntArrayRef(difference.dim() - 1), keepdim);
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  const char* op = "triplet_margin_loss";
  LAMELLA_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), op,
                ": expected 'anchor', 'positive' and 'negative' to have equally many dimensions, ",
                "got ", anchor.sizes(), ", ", positive.sizes(), " and ", negative.sizes());
  LAMELLA_CHECK_VALUE(margin > 0, op, ": expected 'margin' to be greater than 0, got ", margin);
  Tensor near = lamella::pairwise_distance(anchor, positive, p, eps);
  Tensor far = lamella::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = lamella::minimum(far, lamella::pairwise_distance(positive, negative, p, eps));
  return apply_reduction(op, near.sub(far).add(margin).clamp_min(0), reduction);
}

// ---- Classes ----

Tensor nll_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                int64_t reduction, int64_t ignore_index) {
  return std::get<0>(lamella::nll_loss_forward(self, target, weight, reduction, ignore_index));
}
Tensor nll_loss2d(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                  int64_t reduction, int64_t ignore_index) {
  return std::get<0>(lamella::nll_loss2d_forward(self, target, weight, reduction, ignore_index));
}
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                   int64_t reduction, int64_t ignore_index) {
  const char* op = "nll_loss_nd";
  LAMELLA_CHECK_VALUE(self.dim() >= 1, op,
                      ": expected 'self' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK_VALUE(self.dim() == 1 || (target.dim() > 0 && self.size(0) == target.size(0)), op,
                      ": expected 'target' to have a class for each sample of 'self' ",
                      self.sizes(), ", got ", target.sizes());
  if (self.dim() <= 2) return lamella::nll_loss(self, target, weight, reduction, ignore_index);
  if (self.dim() == 4) return lamella::nll_loss2d(self, target, weight, reduction, ignore_index);
  Dims expected(self.sizes());
  expected.erase(1);
  LAMELLA_CHECK(target.sizes().equals(expected), op, ": expected 'target' to be of shape ",
                expected, ", got ", target.sizes());
  int64_t inner = product(self.sizes().slice(2));
  Tensor flat = self.reshape({self.size(0), self.size(1), 1, inner});
  Tensor classes = target.reshape({self.size(0), 1, inner});
  Tensor loss = lamella::nll_loss2d(flat, classes, weight, reduction, ignore_index);
  return reduction == kReduceNone ? loss.reshape(expected) : loss;
}

namespace {
constexpr const char* kCrossEntropy = "cross_entropy_loss";

// Reshapes a weight per class so that it broadcasts along `class_dim` of a tensor of `rank`
// dimensions.
Tensor beside(const Tensor& weight, int64_t rank, int64_t class_dim) {
  if (rank <= 1) return weight;
  Dims shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(class_dim)] = weight.numel();
  return weight.reshape(shape);
}

Tensor entropy_of_probabilities(const Tensor& self, const Tensor& target,
                                const std::optional<Tensor>& weight, int64_t reduction,
                                double smoothing) {
  int64_t class_dim = self.dim() == 1 ? 0 : 1, classes = self.size(class_dim);
  LAMELLA_CHECK(target.is_floating_point(), kCrossEntropy,
                ": expected 'target' of class probabilities to be floating point, got ",
                target.scalar_type());
  LAMELLA_CHECK(!has(weight) || (weight->dim() == 1 && weight->numel() == classes), kCrossEntropy,
                ": expected 'weight' to be of shape [", classes, "], got ", weight->sizes());
  Tensor share = target;
  if (smoothing > 0)
    share = target.mul(1 - smoothing).add(smoothing / static_cast<double>(classes));
  Tensor values = lamella::log_softmax(self, class_dim, self.scalar_type()).mul(share);
  if (has(weight)) values = values.mul(beside(*weight, self.dim(), class_dim));
  if (reduction == kReduceNone) return values.sum(IntArrayRef(class_dim)).neg();
  Tensor sum = values.sum().neg();
  if (reduction == kReduceSum) return sum;
  int64_t samples = classes == 0 ? 0 : self.numel() / classes;
  return sum.div(static_cast<double>(samples));
}

Tensor entropy_with_smoothing(const Tensor& self, const Tensor& target,
                              const std::optional<Tensor>& weight, int64_t reduction,
                              int64_t ignored, double smoothing) {
  int64_t class_dim = self.dim() == 1 ? 0 : 1, classes = self.size(class_dim);
  Tensor logs = lamella::log_softmax(self, class_dim, self.scalar_type());
  Tensor likelihood = lamella::nll_loss_nd(logs, target, weight, reduction, ignored);
  Tensor weighted = has(weight) ? logs.mul(beside(*weight, self.dim(), class_dim)) : logs;
  Tensor spread = weighted.sum(IntArrayRef(class_dim)).neg();
  Tensor left_out = target.eq(ignored);
  if (spread.dim() < left_out.dim()) spread = spread.expand(left_out.sizes());
  spread = spread.masked_fill(left_out, 0);
  if (reduction == kReduceSum) spread = spread.sum();
  if (reduction == kReduceMean) {
    // Ignored samples count neither in the sum nor in the number of samples.
    Tensor counts = left_out.logical_not().to(self.scalar_type());
    if (has(weight)) {
      Tensor chosen = target.masked_fill(left_out, 0).flatten().to(kLong);
      counts = weight->gather(0, chosen).mul(counts.flatten());
    }
    spread = spread.sum().div(counts.sum());
  }
  return likelihood.mul(1 - smoothing).add(spread.mul(smoothing / static_cast<double>(classes)));
}
}  // namespace

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target,
                          const std::optional<Tensor>& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  check_reduction(kCrossEntropy, reduction);
  LAMELLA_CHECK(label_smoothing >= 0 && label_smoothing <= 1, kCrossEntropy,
                ": expected 'label_smoothing' in [0, 1], got ", label_smoothing);
  LAMELLA_CHECK(self.dim() >= 1, kCrossEntropy,
                ": expected 'self' to have at least 1 dimension, got a tensor with 0");
  if (self.sizes().equals(target.sizes())) {
    LAMELLA_CHECK(ignore_index < 0, kCrossEntropy, ": expected no 'ignore_index' with a 'target' ",
                  "of class probabilities, got ", ignore_index);
    return entropy_of_probabilities(self, target, weight, reduction, label_smoothing);
  }
  if (label_smoothing > 0) {
    return entropy_with_smoothing(self, target, weight, reduction, ignore_index, label_smoothing);
  }
  int64_t class_dim = self.dim() == 1 ? 0 : 1;
  return lamella::nll_loss_nd(lamella::log_softmax(self, class_dim, self.scalar_type()), target,
                              weight, reduction, ignore_index);
}

}  // namespace lamella::native
