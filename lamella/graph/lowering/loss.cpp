// Lowering rules of losses and their gradients.
#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

// Both operands in the type of the computation, and the weight of each element in the result.
struct Pair {
  ElementType type;
  Sizes sizes;
  Op x, y;
  double share;  // the weight of each element: 1, or 1 / count for a mean
};
Pair pair_of(const Call& c) {
  Pair p;
  p.type = Call::wide(c.result().element_type());
  p.sizes = c.sizes_of(c.op("self"));
  Sizes other = c.sizes_of(c.op("target"));
  if (other.size() > p.sizes.size()) p.sizes.swap(other);
  p.x = c.convert(c.op("self"), p.type);
  p.y = c.convert(c.op("target"), p.type);
  p.share = 1;
  if (c.integer("reduction", kMean) == kMean) {
    for (int64_t size : p.sizes) p.share /= static_cast<double>(size);
  }
  return p;
}
bool fits(const Call& c, const Pair& p) {
  // Operands that need broadcasting, and empty operands, whose mean is 0 / 0, stay calls.
  return is_floating(p.type) && c.sizes_of(p.x) == p.sizes && c.sizes_of(p.y) == p.sizes &&
         c.shape(p.x).elements() != 0;
}
Ops reduced(const Call& c, Op loss) {
  int64_t reduction = c.integer("reduction", kMean);
  if (reduction == kNone) return {loss};
  Op sum = c.sum(loss, c.dimensions("", c.rank_of(loss)));
  if (reduction == kSum) return {sum};
  return {Div(sum, c.like(sum, static_cast<double>(c.shape(loss).elements())))};
}
// The gradient of each element: grad_output, times the element's share, times `slope`.
Ops passed(const Call& c, const Pair& p, Op slope) {
  Op g = c.broadcast(c.convert(c.op("grad_output"), p.type), p.sizes);
  return {Mul(g, Mul(slope, c.like(slope, p.share)))};
}

Ops mse(Call& c) {
  Pair p = pair_of(c);
  if (!fits(c, p)) return {};
  Op gap = Sub(p.x, p.y);
  return reduced(c, Mul(gap, gap));
}
Ops mse_backward(Call& c) {
  Pair p = pair_of(c);
  if (!fits(c, p)) return {};
  Op gap = Sub(p.x, p.y);
  return passed(c, p, Add(gap, gap));
}

// A loss that is quadratic for differences up to `bend` and linear beyond: huber, and smooth_l1,
// which is huber divided by the bend.
Ops bent(Call& c, double bend, double scale) {
  Pair p = pair_of(c);
  if (!fits(c, p) || bend <= 0) return {};
  Op size = Abs(Sub(p.x, p.y));
  Op near = Mul(Mul(size, size), c.like(size, 0.5));
  Op far = Mul(Sub(size, c.like(size, 0.5 * bend)), c.like(size, bend));
  Op loss = Select(Lt(size, c.like(size, bend)), near, far);
  return reduced(c, Mul(loss, c.like(size, scale)));
}
Ops bent_backward(Call& c, double bend, double scale) {
  Pair p = pair_of(c);
  if (!fits(c, p) || bend <= 0) return {};
  Op gap = Sub(p.x, p.y);
  Op slope = Min(Max(gap, c.like(gap, -bend)), c.like(gap, bend));
  return passed(c, p, Mul(slope, c.like(slope, scale)));
}
Ops smooth_l1(Call& c) { return bent(c, c.real("beta", 1), 1 / c.real("beta", 1)); }
Ops smooth_l1_backward(Call& c) {
  return bent_backward(c, c.real("beta", 1), 1 / c.real("beta", 1));
}
Ops huber(Call& c) { return bent(c, c.real("delta", 1), 1); }
Ops huber_backward(Call& c) { return bent_backward(c, c.real("delta", 1), 1); }

Ops soft_margin(Call& c) {
  Pair p = pair_of(c);
  if (!fits(c, p)) return {};
  return reduced(c, Log1p(Exp(Neg(Mul(p.x, p.y)))));
}

// The gradient of -(y log(x) + (1 - y) log(1 - x)). The loss itself stays a call, because it must
// raise an error for x outside [0, 1].
Op weighted(const Call& c, const Pair& p, Op loss) {
  if (!c.has("weight")) return loss;
  return Mul(loss, c.broadcast(c.convert(c.op("weight"), p.type), p.sizes));
}
Ops cross_entropy_backward(Call& c) {
  Pair p = pair_of(c);
  if (!fits(c, p)) return {};
  constexpr double kLeastVariance = 1e-12;
  Op variance = Max(Mul(Sub(c.like(p.x, 1), p.x), p.x), c.like(p.x, kLeastVariance));
  return passed(c, p, weighted(c, p, Div(Sub(p.x, p.y), variance)));
}

const Rule kLoss[] = {
    {"aten::binary_cross_entropy_backward", cross_entropy_backward},
    {"aten::mse_loss", mse},
    {"aten::mse_loss_backward", mse_backward},
    {"aten::smooth_l1_loss", smooth_l1},
    {"aten::smooth_l1_loss_backward", smooth_l1_backward},
    {"aten::huber_loss", huber},
    {"aten::huber_loss_backward", huber_backward},
    {"aten::soft_margin_loss", soft_margin},
};

}  // namespace

std::span<const Rule> loss_rules() { return kLoss; }

}  // namespace lamella::hlo::lowering
