// Lowering rules of optimizer steps in their functionalized forms: the results are the written
// lists. Parameters are updated as in the kernels, with rates and corrections in float64.
#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

constexpr ElementType kWide = ElementType::F64;

// A one-element tensor as a float64 scalar.
Op scalar_of(const Call& c, Op op) { return c.reshape(c.convert(op, kWide), {}); }
Op rate_of(const Call& c) {
  return c.is_tensor("lr") ? scalar_of(c, c.op("lr")) : c.constant(kWide, c.real("lr"));
}

// Makes ops with the sizes of one parameter, in the type of its computation.
class Parameter {
 public:
  Parameter(const Call& c, Op op)
      : c_(c), type_(Call::wide(c.type_of(op))), sizes_(c.sizes_of(op)) {}
  Op in(Op op) const { return c_.convert(op, type_); }
  Op spread(Op scalar) const { return c_.broadcast(c_.convert(scalar, type_), sizes_); }
  Op number(double value) const { return c_.full(type_, sizes_, value); }

 private:
  const Call& c_;
  ElementType type_;
  Sizes sizes_;
};

bool is_scaled(const Call& c) { return c.has("grad_scale") || c.has("found_inf"); }

void append(Ops& to, const Ops& from) { to.insert(to.end(), from.begin(), from.end()); }

Ops sgd(Call& c) {
  if (is_scaled(c)) return {};
  Ops params = c.ops("self"), grads = c.ops("grads"), buffers = c.ops("momentum_buffer_list");
  Op rate = rate_of(c);
  double decay = c.real("weight_decay"), momentum = c.real("momentum");
  for (size_t i = 0; i < params.size(); ++i) {
    Parameter one(c, params[i]);
    Op at = one.in(params[i]), d = one.in(grads[i]);
    if (c.flag("maximize")) d = Neg(d);
    if (decay != 0) d = Add(d, Mul(one.number(decay), at));
    if (!buffers.empty()) {
      Op next = d;
      if (!c.flag("is_first_step")) {
        next = Add(Mul(one.number(momentum), one.in(buffers[i])),
                   Mul(one.number(1 - c.real("dampening")), d));
      }
      d = c.flag("nesterov") ? Add(d, Mul(one.number(momentum), next)) : next;
      buffers[i] = next;
    }
    params[i] = Sub(at, Mul(one.spread(rate), d));
  }
  append(params, grads);
  append(params, buffers);
  return params;
}

Ops adam_of(Call& c, bool is_decoupled) {
  if (is_scaled(c)) return {};
  Ops params = c.ops("self"), grads = c.ops("grads"), means = c.ops("exp_avgs");
  Ops squares = c.ops("exp_avg_sqs"), most = c.ops("max_exp_avg_sqs");
  Ops steps = c.ops("state_steps");
  Op rate = rate_of(c);
  double beta1 = c.real("beta1"), beta2 = c.real("beta2"), decay = c.real("weight_decay");
  Op unit = c.constant(kWide, 1);
  auto correction = [&](double beta, Op step) {
    return Sub(unit, Pow(c.constant(kWide, beta), scalar_of(c, step)));
  };
  for (size_t i = 0; i < params.size(); ++i) {
    Parameter one(c, params[i]);
    Op at = one.in(params[i]), d = one.in(grads[i]);
    if (c.flag("maximize")) d = Neg(d);
    if (decay != 0 && is_decoupled) {
      at = Mul(at, one.spread(Sub(unit, Mul(rate, c.constant(kWide, decay)))));
    } else if (decay != 0) {
      d = Add(d, Mul(one.number(decay), at));
    }
    Op mean = one.in(means[i]);
    mean = Add(mean, Mul(one.number(1 - beta1), Sub(d, mean)));
    Op second =
        Add(Mul(one.number(beta2), one.in(squares[i])), Mul(Mul(one.number(1 - beta2), d), d));
    means[i] = mean;
    squares[i] = second;
    if (c.flag("amsgrad")) {
      Op before = one.in(most[i]);
      second = Select(Gt(second, before), second, before);
      most[i] = second;
    }
    Op step = one.spread(Div(rate, correction(beta1, steps[i])));
    Op root = one.spread(Sqrt(correction(beta2, steps[i])));
    Op size = Add(Div(Sqrt(second), root), one.number(c.real("eps")));
    params[i] = Sub(at, Div(Mul(step, mean), size));
  }
  for (const Ops* list : {&grads, &means, &squares, &most}) append(params, *list);
  return params;
}
Ops adam(Call& c) { return adam_of(c, false); }
Ops adamw(Call& c) { return adam_of(c, true); }

// Optimizers use this to increment their step counts. A tensor as `scalar` is not lowered.
Ops add_scalar(Call& c) {
  Ops sums;
  for (Op op : c.ops("self")) {
    if (c.is_tensor("scalar") || !is_floating(c.type_of(op))) return {};
    sums.push_back(Add(op, c.like(op, c.number("scalar"))));
  }
  return sums;
}

const Rule kOptimizer[] = {
    {"aten::_fused_sgd_functional", sgd},
    {"aten::_fused_adam_functional", adam},
    {"aten::_fused_adamw_functional", adamw},
    {"aten::_foreach_add_functional", add_scalar},
};

}  // namespace

std::span<const Rule> optimizer_rules() { return kOptimizer; }

}  // namespace lamella::hlo::lowering
