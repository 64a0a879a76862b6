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

// Clamps x to finite values, for products with a factor that is 0 at x = -infinity.
Op bounded(const Call& c, Op x) {
  return Max(x, c.broadcast(MinFiniteValue(c.builder(), c.type()), c.sizes()));
}

Ops relu(Call& c) {
  Op x = c.in("self");
  return {Max(x, c.fill(0))};
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
  Op slope = c.flag("is_result") ? Mul(num(c, inner), Add(x, num(c, alpha * scale)))
                                 : Mul(num(c, inner * alpha * scale), Exp(Mul(x, num(c, inner))));
  return {Mul(g, Select(Gt(x, num(c, 0)), num(c, scale), slope))};
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

// GELU: x Phi(x), where Phi is the cumulative distribution function of the standard normal
// distribution, or its tanh approximation (Hendrycks and Gimpel, "Gaussian Error Linear Units").
constexpr double kCubic = 0.044715;
Op tanh_inside(const Call& c, Op x) {
  Op cube = Mul(Mul(x, x), x);
  double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  return Mul(num(c, root), Add(x, Mul(num(c, kCubic), cube)));
}
Ops gelu(Call& c) {
  Op x = x_of(c);
  bool approximate = c.text("approximate") == "tanh";
  Op inside = approximate ? Tanh(tanh_inside(c, x)) : Erf(Mul(x, num(c, std::numbers::sqrt2 / 2)));
  return {Mul(Mul(num(c, 0.5), bounded(c, x)), Add(num(c, 1), inside))};
}
Ops gelu_backward(Call& c) {
  Op g = gradient(c);
  Op x = c.in("self");
  if (c.text("approximate") == "tanh") {
    double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    Op t = Tanh(tanh_inside(c, x));
    Op inner = Mul(num(c, root), Add(num(c, 1), Mul(num(c, 3 * kCubic), Mul(x, x))));
    Op slope = Mul(Mul(num(c, 0.5), x), Mul(Sub(num(c, 1), Mul(t, t)), inner));
    return {Mul(g, Add(Mul(num(c, 0.5), Add(num(c, 1), t)), slope))};
  }
  Op distribution = Mul(num(c, 0.5), Add(num(c, 1), Erf(Mul(x, num(c, std::numbers::sqrt2 / 2)))));
  double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // 1 / sqrt(2 pi)
  Op bell = Mul(num(c, density), Exp(Mul(num(c, -0.5), Mul(x, x))));
  return {Mul(g, Add(distribution, Mul(x, bell)))};
}

// ---- Piecewise linear functions -----------------------------------------------------------------

Ops hardtanh(Call& c) { return {Min(Max(c.in("self"), c.in("min_val")), c.in("max_val"))}; }
// `slope` times the gradient where low < x < high, and 0 elsewhere.
Ops inside(Call& c, Op x, double low, double high, double slope) {
  Op g = gradient(c);
  Op within = And(Gt(x, num(c, low)), Lt(x, num(c, high)));
  return {Select(within, Mul(g, num(c, slope)), num(c, 0))};
}
Ops hardtanh_backward(Call& c) {
  Op x = x_of(c);
  return inside(c, x, c.real("min_val"), c.real("max_val"), 1);
}
Op sixth(const Call& c, Op x) {
  return Div(Min(Max(Add(x, num(c, 3)), num(c, 0)), num(c, 6)), num(c, 6));
}
Ops hardswish_backward(Call& c) {
  Op g = gradient(c);
  Op x = c.in("self");
  Op middle = Mul(g, Add(Div(x, num(c, 3)), num(c, 0.5)));
  return {Select(Lt(x, num(c, -3)), num(c, 0), Select(Le(x, num(c, 3)), middle, g))};
}
Op beyond(const Call& c, Op x) { return Or(Gt(x, c.in("lambd")), Lt(x, Neg(c.in("lambd")))); }
Ops hardshrink(Call& c) {
  Op x = x_of(c);
  Op within = And(Ge(x, Neg(c.in("lambd"))), Le(x, c.in("lambd")));
  return {Select(within, num(c, 0), x)};
}
Ops softshrink(Call& c) {
  Op x = x_of(c), limit = c.in("lambd");
  // The last case keeps NaN.
  return {Select(Gt(x, limit), Sub(x, limit),
                 Select(Lt(x, Neg(limit)), Add(x, limit), Mul(x, num(c, 0))))};
}

Ops mish_backward(Call& c) {
  Op g = gradient(c);
  Op x = c.in("self"), s = Logistic(x);
  Op t = Tanh(Log1p(Exp(x)));
  return {Mul(g, Add(t, Mul(Mul(x, s), Sub(num(c, 1), Mul(t, t)))))};
}

// log(x / (1 - x)); x is clamped to [eps, 1 - eps] if eps is given.
Ops logit(Call& c) {
  Op x = x_of(c);
  if (!is_real(c)) return {};
  if (c.has("eps")) {
    double eps = c.real("eps");
    x = Min(Max(x, num(c, eps)), num(c, 1 - eps));
  }
  return {Log(Div(x, Sub(num(c, 1), x)))};
}
Ops logit_backward(Call& c) {
  Op g = gradient(c);
  if (!is_real(c) || !c.has("eps")) return {};
  Op x = c.in("self");
  double eps = c.real("eps");
  Op within = And(Ge(x, num(c, eps)), Le(x, num(c, 1 - eps)));
  return {Select(within, Div(g, Mul(x, Sub(num(c, 1), x))), num(c, 0))};
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

const Rule kActivation[] = {
    {"aten::relu", relu},
    {"aten::relu6", [](Call& c) -> Ops { return {Min(Max(c.in("self"), c.fill(0)), c.fill(6))}; }},
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
    {"aten::mish",
     [](Call& c) -> Ops {
       Op x = x_of(c);
       Op soft = Select(Gt(x, num(c, 20)), x, Log1p(Exp(x)));
       return {Mul(bounded(c, x), Tanh(soft))};
     }},
    {"aten::mish_backward", mish_backward},
    {"aten::gelu", gelu},
    {"aten::gelu_backward", gelu_backward},
    {"aten::hardtanh", hardtanh},
    {"aten::hardtanh_backward", hardtanh_backward},
    {"aten::hardsigmoid", [](Call& c) -> Ops { return {sixth(c, x_of(c))}; }},
    {"aten::hardsigmoid_backward",
     [](Call& c) -> Ops { return inside(c, x_of(c), -3, 3, 1.0 / 6); }},
    {"aten::hardswish",
     [](Call& c) -> Ops {
       Op x = x_of(c);
       return {Mul(x, sixth(c, x))};
     }},
    {"aten::hardswish_backward", hardswish_backward},
    {"aten::hardshrink", hardshrink},
    {"aten::hardshrink_backward",
     [](Call& c) -> Ops {
       Op g = gradient(c, "grad_out");
       return {Select(beyond(c, c.in("self")), g, num(c, 0))};
     }},
    {"aten::softshrink", softshrink},
    {"aten::softshrink_backward",
     [](Call& c) -> Ops {
       Op g = gradient(c);
       return {Select(beyond(c, c.in("self")), g, num(c, 0))};
     }},
    {"aten::logit", logit},
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
