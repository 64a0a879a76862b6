// Lowering rules of activation functions and their gradients. They compute 16-bit types in float32.
#include <cmath>
#include <numbers>

#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

// The argument, converted to the type of the computation.
Op x_of(Call& c, const char* name = "self") {
  c.widen();
  return c.in(name);
}
Op gradient(Call& c, const char* name = "grad_output") { return x_of(c, name); }
Op num(const Call& c, double value) { return c.fill(value); }
bool is_real(const Call& c) { return is_floating(c.type()); }

// Bounds that keep NaN and, between equal zeros, the operand.
Op at_least(Op x, Op bound) { return Select(Lt(x, bound), bound, x); }
Op at_most(Op x, Op bound) { return Select(Gt(x, bound), bound, x); }

Ops relu(Call& c) {
  Op x = c.in("self");
  return {at_least(x, c.fill(0))};
}
Ops threshold(Call& c) {
  Op x = x_of(c);
  return {Select(Le(x, c.in("threshold")), c.in("value"), x)};
}
Ops threshold_backward(Call& c) {
  Op g = gradient(c);
  return {Select(Le(c.in("self"), c.in("threshold")), num(c, 0), g)};
}
Ops leaky_relu(Call& c) {
  Op x = x_of(c);
  return {Select(Gt(x, num(c, 0)), x, Mul(x, c.in("negative_slope")))};
}
Ops leaky_relu_backward(Call& c) {
  Op g = gradient(c);
  return {Select(Gt(c.in("self"), num(c, 0)), g, Mul(g, c.in("negative_slope")))};
}
Ops prelu(Call& c) {
  Op x = x_of(c);
  return {Select(Gt(x, num(c, 0)), x, Mul(x, c.in("weight")))};
}

Op exponential_unit(Call& c, double alpha, double scale, double input_scale) {
  Op x = x_of(c);
  Op negative = Mul(Expm1(Mul(x, num(c, input_scale))), num(c, alpha * scale));
  return Select(Gt(x, num(c, 0)), Mul(x, num(c, scale)), negative);
}
Ops elu(Call& c) {
  return {exponential_unit(c, c.real("alpha", 1), c.real("scale", 1), c.real("input_scale", 1))};
}
Ops elu_backward(Call& c) {
  Op g = gradient(c);
  Op x = c.in("self_or_result");
  double alpha = c.real("alpha", 1), scale = c.real("scale", 1), inner = c.real("input_scale", 1);
  Op below = c.flag("is_result") ? Add(x, num(c, alpha * scale))
                                 : Mul(num(c, alpha * scale), Exp(Mul(x, num(c, inner))));
  return {Select(Le(x, num(c, 0)), Mul(Mul(g, num(c, inner)), below), Mul(g, num(c, scale)))};
}

Ops softplus(Call& c) {
  Op x = x_of(c);
  double beta = c.real("beta", 1);
  Op scaled = Mul(x, num(c, beta));
  Op soft = Div(Log1p(Exp(scaled)), num(c, beta));
  return {Select(Gt(scaled, c.in("threshold")), x, soft)};
}
Ops softplus_backward(Call& c) {
  Op g = gradient(c);
  Op scaled = Mul(c.in("self"), c.in("beta"));
  return {Select(Gt(scaled, c.in("threshold")), g, Mul(g, Logistic(scaled)))};
}
// The log of the logistic function: log(1 / (1 + exp(-x))) = min(x, 0) - log1p(exp(-|x|)).
Op log_logistic(const Call& c, Op x) { return Sub(Min(x, num(c, 0)), Log1p(Exp(Neg(Abs(x))))); }
Ops log_sigmoid_backward(Call& c) {
  Op g = gradient(c);
  return {Mul(g, Logistic(Neg(c.in("self"))))};
}

Ops silu_backward(Call& c) {
  Op g = gradient(c);
  Op x = c.in("self"), s = Logistic(x);
  return {Mul(g, Mul(s, Add(num(c, 1), Mul(x, Sub(num(c, 1), s)))))};
}

// ---- Piecewise linear functions -----------------------------------------------------------------

Ops hardtanh(Call& c) {
  return {at_most(at_least(c.in("self"), c.in("min_val")), c.in("max_val"))};
}
Ops hardtanh_backward(Call& c) {
  Op g = gradient(c), x = c.in("self");
  Op beyond = Or(Le(x, c.in("min_val")), Ge(x, c.in("max_val")));
  return {Select(beyond, num(c, 0), g)};
}
// x + 3, limited to [0, 6].
Op limited(const Call& c, Op x) {
  return at_most(at_least(Add(x, num(c, 3)), num(c, 0)), num(c, 6));
}
Ops hardsigmoid_backward(Call& c) {
  Op g = gradient(c), x = c.in("self");
  Op within = And(Gt(x, num(c, -3)), Lt(x, num(c, 3)));
  return {Select(within, Div(g, num(c, 6)), num(c, 0))};
}
Ops hardswish_backward(Call& c) {
  Op g = gradient(c);
  Op x = c.in("self");
  Op middle = Mul(g, Add(Div(x, num(c, 3)), num(c, 0.5)));
  return {Select(Le(x, num(c, -3)), num(c, 0), Select(Lt(x, num(c, 3)), middle, g))};
}
Op within(const Call& c, Op x) { return And(Ge(x, Neg(c.in("lambd"))), Le(x, c.in("lambd"))); }
Ops hardshrink(Call& c) {
  Op x = x_of(c);
  return {Select(within(c, x), num(c, 0), x)};
}
Ops shrink_backward(Call& c, const char* name) {
  Op g = gradient(c, name);
  return {Select(within(c, c.in("self")), num(c, 0), g)};
}
Ops softshrink(Call& c) {
  Op x = x_of(c), limit = c.in("lambd");
  // The last case keeps NaN.
  return {Select(Gt(x, limit), Sub(x, limit),
                 Select(Lt(x, Neg(limit)), Add(x, limit), Mul(x, num(c, 0))))};
}

Ops logit_backward(Call& c) {
  Op g = gradient(c);
  if (!is_real(c) || !c.has("eps")) return {};
  Op x = c.in("self");
  double eps = c.real("eps");
  Op beyond = Or(Lt(x, num(c, eps)), Gt(x, num(c, 1 - eps)));
  return {Select(beyond, num(c, 0), Div(g, Mul(x, Sub(num(c, 1), x))))};
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

const Rule kActivation[] = {
    {"aten::relu", relu},
    {"aten::relu6",
     [](Call& c) -> Ops { return {at_most(at_least(c.in("self"), c.fill(0)), c.fill(6))}; }},
    {"aten::threshold", threshold},
    {"aten::threshold_backward", threshold_backward},
    {"aten::leaky_relu", leaky_relu},
    {"aten::leaky_relu_backward", leaky_relu_backward},
    {"aten::_prelu_kernel", prelu},
    {"aten::elu", elu},
    {"aten::elu_backward", elu_backward},
    {"aten::celu",
     [](Call& c) -> Ops {
       double alpha = c.real("alpha", 1);
       return {exponential_unit(c, alpha, 1, 1 / alpha)};
     }},
    {"aten::selu", [](Call& c) -> Ops { return {exponential_unit(c, kSeluAlpha, kSeluScale, 1)}; }},
    {"aten::softplus", softplus},
    {"aten::softplus_backward", softplus_backward},
    {"aten::log_sigmoid", [](Call& c) -> Ops { return {log_logistic(c, x_of(c))}; }},
    {"aten::log_sigmoid_backward", log_sigmoid_backward},
    {"aten::sigmoid_backward",
     [](Call& c) -> Ops {
       if (!is_real(c)) return {};
       Op g = gradient(c), y = c.in("output");
       return {Mul(g, Mul(Sub(num(c, 1), y), y))};
     }},
    {"aten::tanh_backward",
     [](Call& c) -> Ops {
       if (!is_real(c)) return {};
       Op g = gradient(c), y = c.in("output");
       return {Mul(g, Sub(num(c, 1), Mul(y, y)))};
     }},
    {"aten::silu",
     [](Call& c) -> Ops {
       Op x = x_of(c);
       return {Mul(x, Logistic(x))};
     }},
    {"aten::silu_backward", silu_backward},
    {"aten::hardtanh", hardtanh},
    {"aten::hardtanh_backward", hardtanh_backward},
    {"aten::hardsigmoid",
     [](Call& c) -> Ops {
       Op x = x_of(c);
       return {Div(limited(c, x), num(c, 6))};
     }},
    {"aten::hardsigmoid_backward", hardsigmoid_backward},
    {"aten::hardswish",
     [](Call& c) -> Ops {
       Op x = x_of(c);
       return {Div(Mul(x, limited(c, x)), num(c, 6))};
     }},
    {"aten::hardswish_backward", hardswish_backward},
    {"aten::hardshrink", hardshrink},
    {"aten::hardshrink_backward", [](Call& c) -> Ops { return shrink_backward(c, "grad_out"); }},
    {"aten::softshrink", softshrink},
    {"aten::softshrink_backward", [](Call& c) -> Ops { return shrink_backward(c, "grad_output"); }},
    {"aten::logit_backward", logit_backward},
    {"aten::native_dropout_backward",
     [](Call& c) -> Ops {
       Op g = gradient(c);
       return {Mul(g, Mul(c.in("mask"), num(c, c.real("scale"))))};
     }},
};

}  // namespace

std::span<const Rule> activation_rules() { return kActivation; }

}  // namespace lamella::hlo::lowering
