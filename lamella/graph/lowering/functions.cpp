// Lowering rules of functions that no opcode is. Machine code calculates them by the kernels'
// functions, so that they are custom calls otherwise; these rules are for other compilers of HLO.
#include <iterator>
#include <limits>
#include <numbers>

#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

// Numbers of the type of the computation.
struct Maker {
  Call& c;
  explicit Maker(Call& call) : c(call) { c.widen(); }
  Op in(const char* name) const { return c.in(name); }
  Op num(double value) const { return c.fill(value); }
};

Op scaled(const Maker& m, Op x, double by) { return Mul(x, m.num(by)); }

// For x >= 0.5: t exp(-x^2 + p(t)) with t = 2 / (2 + x), where p is a Chebyshev series (Numerical
// Recipes, 6.2.2). The square is split, since its rounding would be an error of the exponential.
Op erfc_of_large(const Maker& m, Op x) {
  constexpr double kSeries[] = {-1.3026537197817094,
                                6.4196979235649026e-1,
                                1.9476473204185836e-2,
                                -9.561514786808631e-3,
                                -9.46595344482036e-4,
                                3.66839497852761e-4,
                                4.2523324806907e-5,
                                -2.0278578112534e-5,
                                -1.624290004647e-6,
                                1.303655835580e-6,
                                1.5626441722e-8,
                                -8.5238095915e-8,
                                6.529054439e-9,
                                5.059343495e-9,
                                -9.91364156e-10,
                                -2.27365122e-10,
                                9.6467911e-11,
                                2.394038e-12,
                                -6.886027e-12,
                                8.94487e-13,
                                3.13092e-13,
                                -1.12708e-13,
                                3.81e-16,
                                7.106e-15,
                                -1.523e-15,
                                -9.4e-17,
                                1.21e-16,
                                -2.8e-17};
  Op t = Div(m.num(2), Add(m.num(2), x));
  Op at = Sub(scaled(m, t, 4), m.num(2));
  Op d = m.num(0), before = m.num(0);
  for (size_t n = std::size(kSeries) - 1; n > 0; --n) {
    Op next = Add(Sub(Mul(at, d), before), m.num(kSeries[n]));
    before = d;
    d = next;
  }
  Op p = Sub(scaled(m, Add(m.num(kSeries[0]), Mul(at, d)), 0.5), before);
  bool is_double = m.c.type() == ElementType::F64;
  Op head = is_double ? ReducePrecision(x, 11, 25) : ReducePrecision(x, 8, 10);
  Op rest = Mul(Sub(head, x), Add(head, x));
  return Mul(t, Mul(Exp(Neg(Mul(head, head))), Exp(Add(rest, p))));
}
Op erfc_of(const Maker& m, Op x) {
  Op size = Min(Abs(x), m.num(64));
  Op tail = erfc_of_large(m, size);
  tail = Select(Lt(x, m.num(0)), Sub(m.num(2), tail), tail);
  Op middle = Sub(m.num(1), Erf(x));
  return Select(Or(Lt(Abs(x), m.num(0.5)), Ne(x, x)), middle, tail);
}
Ops erfc(Call& c) {
  Maker m(c);
  if (!is_floating(c.type())) return {};
  return {erfc_of(m, m.in("self"))};
}

// A polynomial for single precision (M. Giles, Approximating the erfinv function), then Newton.
Ops erfinv(Call& c) {
  constexpr double kMiddle[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                -0.00417768164,  0.246640727,    1.50140941};
  constexpr double kTail[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                              -0.00367342844,  0.00573950773,  -0.0076224613,
                              0.00943887047,   1.00167406,     2.83297682};
  Maker m(c);
  if (!is_floating(c.type())) return {};
  Op x = m.in("self"), one = m.num(1);
  Op w = Neg(Log(Mul(Sub(one, x), Add(one, x))));
  Op is_middle = Lt(w, m.num(5));
  Op at = Select(is_middle, Sub(w, m.num(2.5)), Sub(Sqrt(w), m.num(3)));
  Op p = Select(is_middle, m.num(kMiddle[0]), m.num(kTail[0]));
  for (size_t n = 1; n < std::size(kMiddle); ++n) {
    p = Add(Mul(p, at), Select(is_middle, m.num(kMiddle[n]), m.num(kTail[n])));
  }
  Op y = Mul(p, x), size = Abs(x);
  for (int step = 0; step < 2; ++step) {
    Op reached = Abs(y);
    Op gap = Select(Lt(size, m.num(0.5)), Sub(size, Erf(reached)),
                    Sub(erfc_of(m, reached), Sub(one, size)));
    Op slope = scaled(m, Exp(Neg(Mul(reached, reached))), 2 * std::numbers::inv_sqrtpi);
    y = Mul(Sign(x), Add(reached, Div(gap, slope)));
  }
  Op edge = Select(Eq(size, one), Mul(x, m.num(std::numeric_limits<double>::infinity())), y);
  return {Select(Lt(size, m.num(1e-30)), scaled(m, x, 1 / std::numbers::inv_sqrtpi / 2), edge)};
}

Ops logarithm(Call& c, double scale) {
  Maker m(c);
  if (!is_floating(c.type())) return {};
  return {scaled(m, Log(m.in("self")), scale)};
}
Ops log2(Call& c) { return logarithm(c, std::numbers::log2e); }
Ops log10(Call& c) { return logarithm(c, std::numbers::log10e); }
Ops exp2(Call& c) {
  Maker m(c);
  if (!is_floating(c.type())) return {};
  return {Pow(m.num(2), m.in("self"))};
}
Ops logit(Call& c) {
  Maker m(c);
  Op x = m.in("self");
  if (c.has("eps")) {
    Op low = m.num(c.real("eps")), high = Sub(m.num(1), low);
    x = Select(Lt(x, low), low, Select(Gt(x, high), high, x));
  }
  return {Sub(Log(x), Log1p(Neg(x)))};
}
Ops logit_backward(Call& c) {
  Maker m(c);
  const bool clamps = c.has("eps");
  const double eps = clamps ? c.real("eps") : 0;
  Op x = m.in("self");
  Op beyond = Or(Lt(x, m.num(eps)), Gt(x, m.num(1 - eps)));
  Op there = m.num(clamps ? 0 : std::numeric_limits<double>::quiet_NaN());
  Op slope = Div(m.in("grad_output"), Mul(x, Sub(m.num(1), x)));
  return {Select(beyond, there, slope)};
}

// ---- Activations --------------------------------------------------------------------------------

Op normal_part(const Maker& m, Op x) {
  return scaled(m, Add(m.num(1), Erf(scaled(m, x, 1 / std::numbers::sqrt2))), 0.5);
}
// 1 - tanh(x)^2, without cancellation.
Op tanh_slope(const Maker& m, Op x) {
  Op e = Exp(scaled(m, Abs(x), -2)), sum = Add(m.num(1), e);
  return Div(scaled(m, e, 4), Mul(sum, sum));
}
constexpr double kTanhScale = 2 / std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kTanhCube = 0.044715;
Op tanh_argument(const Maker& m, Op x) {
  Op cube = scaled(m, Mul(x, Mul(x, x)), kTanhCube);
  return scaled(m, Add(x, cube), kTanhScale);
}
// The activations multiply x by factors that are exactly 0 where |x| is larger than these numbers,
// in every type of floats. x is bounded there, because infinity times 0 is NaN.
constexpr double kGeluEnd = 40, kMishEnd = 1000;
Op at_least(const Maker& m, Op x, double end) { return Max(x, m.num(-end)); }
Op within(const Maker& m, Op x, double end) { return Min(at_least(m, x, end), m.num(end)); }
Ops gelu(Call& c) {
  Maker m(c);
  Op x = m.in("self"), factor = at_least(m, x, kGeluEnd);
  if (c.text("approximate") != "tanh") return {Mul(factor, normal_part(m, x))};
  return {Mul(scaled(m, factor, 0.5), Add(m.num(1), Tanh(tanh_argument(m, x))))};
}
Ops gelu_backward(Call& c) {
  Maker m(c);
  Op g = m.in("grad_output"), x = m.in("self");
  if (c.text("approximate") != "tanh") {
    Op density = scaled(m, Exp(scaled(m, Mul(x, x), -0.5)), kTanhScale / 2);
    return {Mul(g, Add(normal_part(m, x), Mul(within(m, x, kGeluEnd), density)))};
  }
  x = within(m, x, kGeluEnd);
  Op at = tanh_argument(m, x);
  Op inner = scaled(m, Add(m.num(1), scaled(m, Mul(x, x), 3 * kTanhCube)), kTanhScale);
  Op slope = Mul(scaled(m, x, 0.5), Mul(tanh_slope(m, at), inner));
  return {Mul(g, Add(scaled(m, Add(m.num(1), Tanh(at)), 0.5), slope))};
}
// log(1 + exp(x)).
Op soft(const Maker& m, Op x) { return Add(Max(x, m.num(0)), Log1p(Exp(Neg(Abs(x))))); }
Ops mish(Call& c) {
  Maker m(c);
  Op x = m.in("self");
  return {Mul(at_least(m, x, kMishEnd), Tanh(soft(m, x)))};
}
Ops mish_backward(Call& c) {
  Maker m(c);
  Op x = m.in("self"), at = soft(m, x);
  Op slope = Mul(x, Mul(Logistic(x), tanh_slope(m, at)));
  return {Mul(m.in("grad_output"), Add(Tanh(at), slope))};
}

const Rule kFunctions[] = {
    {"aten::erfc", erfc},
    {"aten::erfinv", erfinv},
    {"aten::exp2", exp2},
    {"aten::gelu", gelu},
    {"aten::gelu_backward", gelu_backward},
    {"aten::log10", log10},
    {"aten::log2", log2},
    {"aten::logit", logit},
    {"aten::logit_backward", logit_backward},
    {"aten::mish", mish},
    {"aten::mish_backward", mish_backward},
};

}  // namespace

const Rule* find_portable_rule(std::string_view name) {
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  for (const Rule& rule : kFunctions) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

}  // namespace lamella::hlo::lowering
