// Rules for losses: each example has a reduction of its own.
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// Elementwise losses and their backwards: the operator is called without reduction, and the
// reduction of each example is done here.
void loss(BatchedCall& call) {
  const BatchingPlan& plan = call.plan();
  auto reduction_at = static_cast<uint32_t>(plan.find("reduction"));
  int grad_at = plan.find("grad_output");
  int64_t reduction = call.integer(reduction_at);
  LAMELLA_CHECK_VALUE(reduction >= kNone && reduction <= kSum, plan.name,
                      ": expected 'reduction' to be 0 (none), 1 (mean) or 2 (sum), got ",
                      reduction);
  int64_t rank = 0;
  for (uint32_t i : plan.facts->tensors) {
    if (call.has(i) && static_cast<int>(i) != grad_at) rank = std::max(rank, call.dim(i));
  }
  std::vector<Tensor> elements;
  for (uint32_t i : plan.facts->tensors) {
    if (!call.has(i) || static_cast<int>(i) == grad_at) continue;
    elements.push_back(front(call, input(call, i), rank));
    call.set(i, elements.back());
  }
  call.set_value(reduction_at, IValue(int64_t{kNone}));
  if (grad_at >= 0) {
    auto at = static_cast<uint32_t>(grad_at);
    Tensor shape = lamella::broadcast_tensors(elements)[0];
    Tensor grad = front(call, input(call, at), rank).expand(shape.sizes());
    if (reduction == kMean) {
      int64_t count = call.batch_size() == 0 ? 1 : shape.numel() / call.batch_size();
      grad = grad.div(static_cast<double>(count));
    }
    call.set(at, grad);
    return call.run();
  }
  if (reduction == kNone || rank == 0) return call.run();
  Sizes over;
  for (int64_t d = 1; d <= rank; ++d) over.push_back(d);
  call.run_and([&](Tensor values) {
    return reduction == kMean ? values.mean(IntArrayRef(over)) : values.sum(IntArrayRef(over));
  });
}

// ---- Negative log-likelihood ------------------------------------------------------------------

// The class dimension of an input [C], [N, C] or [N, C, ...], and the class and weight of each
// target (weight 0: ignored).
struct Classes {
  int64_t dim;
  Tensor target;  // a valid class; 0 where it is ignored
  Tensor weight;
};
Classes classes_of(const char* op, const Tensor& self, const Tensor& target,
                   const std::optional<Tensor>& weight, int64_t ignore_index) {
  LAMELLA_CHECK(target.scalar_type() == kLong || target.scalar_type() == kByte, op,
                ": expected 'target' to be int64 or uint8, got ", target.scalar_type());
  Classes c;
  c.dim = self.dim() == 1 ? 0 : 1;
  Tensor given = target.to(kLong);
  if (self.dim() == 1 && given.dim() == 1) given = given.squeeze(0);
  LAMELLA_CHECK(given.dim() == self.dim() - 1, op, ": expected 'target' to have ", self.dim() - 1,
                " dimensions, got ", target.sizes());
  Tensor ignored = given.eq(ignore_index);
  c.target = given.masked_fill(ignored, 0);
  c.weight = weight ? weight->gather(0, c.target.reshape({-1})).view(c.target.sizes())
                    : lamella::ones_like(c.target, self.options());
  c.weight = c.weight.masked_fill(ignored, 0);
  return c;
}
std::tuple<Tensor, Tensor> nll_loss(const char* op, const Tensor& self, const Tensor& target,
                                    const std::optional<Tensor>& weight, int64_t reduction,
                                    int64_t ignore_index) {
  Classes c = classes_of(op, self, target, weight, ignore_index);
  Tensor picked = self.gather(c.dim, c.target.unsqueeze(c.dim)).squeeze(c.dim);
  // An ignored target contributes 0 even where the value is infinite.
  Tensor losses = picked.neg().masked_fill(c.weight.eq(0), 0).mul(c.weight);
  if (reduction == kNone && self.dim() > 1) {
    return {losses, lamella::zeros({}, self.options())};
  }
  Tensor total = c.weight.sum(), sum = losses.sum();
  return {reduction == kMean ? sum.div(total) : sum, total};
}
Tensor nll_loss_grad(const char* op, const Tensor& grad_output, const Tensor& self,
                     const Tensor& target, const std::optional<Tensor>& weight, int64_t reduction,
                     int64_t ignore_index, const Tensor& total_weight) {
  Classes c = classes_of(op, self, target, weight, ignore_index);
  Tensor grad = reduction == kMean ? grad_output.div(total_weight) : grad_output;
  if (grad.dim() > c.weight.dim()) grad = grad.reshape(c.weight.sizes());
  Tensor values = grad.mul(c.weight).neg().masked_fill(c.weight.eq(0), 0);
  return lamella::zeros_like(self).scatter(c.dim, c.target.unsqueeze(c.dim),
                                           values.unsqueeze(c.dim));
}

std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            const std::optional<Tensor>& weight, int64_t reduction,
                                            int64_t ignore_index) {
  return nll_loss("nll_loss", self, target, weight, reduction, ignore_index);
}
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         const std::optional<Tensor>& weight, int64_t reduction,
                         int64_t ignore_index, const Tensor& total_weight) {
  return nll_loss_grad("nll_loss_backward", grad_output, self, target, weight, reduction,
                       ignore_index, total_weight);
}

constexpr NamedRule kRules[] = {
    {"loss", &loss},
    {"nll_loss", &decomposed<&nll_loss_forward>},
    {"nll_loss_backward", &decomposed<&nll_loss_backward>},
};

}  // namespace

NamedRules loss_rules() { return kRules; }

}  // namespace lamella::vmap
