// Lowering rules of elementwise operators with one or several operands. Operators that are a single
// opcode have no rule here; the word `hlo:` of their declaration names the opcode.
#include <cmath>
#include <limits>
#include <numbers>

#include "lamella/graph/builder/lib/math.h"
#include "lamella/graph/lowering/lowering.h"

namespace lamella::hlo::lowering {
namespace {

Op one(const Call& c) { return c.fill(1); }
Op zero(const Call& c) { return c.fill(0); }

// Rounding is the identity on integers.
template <Op (*kRound)(Operand)>
Ops rounding(Call& c) {
  return {is_floating(c.type()) ? kRound(c.in("self")) : c.in("self")};
}
Op truncated(const Call& c, Op x) { return Select(Lt(x, c.like(x, 0)), Ceil(x), Floor(x)); }

bool is_float_input(const Call& c) { return is_floating(c.type_of(c.op("self"))); }
Op as_is(const Call& c) { return c.op("self"); }
Op pred(const Call& c, Op x) { return c.convert(x, ElementType::PRED); }

Ops is_value(Call& c, Op (*test)(Operand)) {
  if (is_complex(c.type_of(as_is(c)))) return {};
  if (!is_float_input(c)) return {c.full(ElementType::PRED, c.sizes(), false)};
  return {test(as_is(c))};
}

Ops nan_to_num(Call& c) {
  Op x = c.in("self");
  if (!is_floating(c.type())) return is_complex(c.type()) ? Ops() : Ops{x};
  Op low = c.broadcast(MinFiniteValue(c.builder(), c.type()), c.sizes());
  Op high = c.broadcast(MaxFiniteValue(c.builder(), c.type()), c.sizes());
  if (c.has("posinf")) high = c.fill(c.number("posinf"));
  if (c.has("neginf")) low = c.fill(c.number("neginf"));
  Op finite = Select(IsPosInf(x), high, Select(IsNegInf(x), low, x));
  return {Select(IsNan(x), c.fill(c.number("nan", 0.0)), finite)};
}

const Rule kUnary[] = {
    {"aten::abs",
     [](Call& c) -> Ops {
       ElementKind kind = element_kind(c.type_of(as_is(c)));
       if (kind == ElementKind::Predicate || kind == ElementKind::Unsigned) return {as_is(c)};
       return {Abs(as_is(c))};
     }},
    {"aten::ceil", rounding<Ceil>},
    {"aten::floor", rounding<Floor>},
    {"aten::round",
     [](Call& c) -> Ops {
       if (c.integer("decimals") != 0) return {};
       return rounding<RoundNearestEven>(c);
     }},
    {"aten::trunc",
     [](Call& c) -> Ops {
       Op x = c.in("self");
       if (!is_floating(c.type())) return {x};
       // Keeps NaN, and the sign of numbers that become 0.
       return {truncated(c, x)};
     }},
    {"aten::frac",
     [](Call& c) -> Ops {
       Op x = c.in("self");
       return {Sub(x, truncated(c, x))};
     }},
    {"aten::reciprocal",
     [](Call& c) -> Ops { return is_complex(c.type()) ? Ops() : Ops{Div(one(c), c.in("self"))}; }},
    {"aten::square",
     [](Call& c) -> Ops {
       Op x = c.in("self");
       return {Mul(x, x)};
     }},
    {"aten::positive", [](Call& c) -> Ops { return {as_is(c)}; }},
    {"aten::neg", [](Call& c) -> Ops { return {Neg(c.in("self"))}; }},
    {"aten::deg2rad",
     [](Call& c) -> Ops { return {Mul(c.in("self"), c.fill(std::numbers::pi / 180))}; }},
    {"aten::rad2deg",
     [](Call& c) -> Ops { return {Mul(c.in("self"), c.fill(180 / std::numbers::pi))}; }},
    {"aten::logical_not", [](Call& c) -> Ops { return {Not(pred(c, as_is(c)))}; }},
    {"aten::isnan", [](Call& c) -> Ops { return is_value(c, IsNan); }},
    {"aten::isinf", [](Call& c) -> Ops { return is_value(c, IsInf); }},
    {"aten::isposinf", [](Call& c) -> Ops { return is_value(c, IsPosInf); }},
    {"aten::isneginf", [](Call& c) -> Ops { return is_value(c, IsNegInf); }},
    {"aten::isfinite",
     [](Call& c) -> Ops {
       if (is_complex(c.type_of(as_is(c)))) return {};
       if (!is_float_input(c)) return {c.full(ElementType::PRED, c.sizes(), true)};
       return {IsFinite(as_is(c))};
     }},
    {"aten::nan_to_num", nan_to_num},
    {"aten::sign",
     [](Call& c) -> Ops {
       Op x = as_is(c);
       if (c.type_of(x) == ElementType::PRED) return {x};
       if (!is_floating(c.type_of(x))) return {Sign(x)};
       // NaN and 0 give 0.
       Op positive = c.convert(Gt(x, c.like(x, 0)), c.type_of(x));
       return {Sub(positive, c.convert(Lt(x, c.like(x, 0)), c.type_of(x)))};
     }},
    {"aten::sgn",
     [](Call& c) -> Ops {
       return is_complex(c.type()) ? Ops{Sign(as_is(c))} : find_rule("aten::sign")->lower(c);
     }},
    {"aten::real",
     [](Call& c) -> Ops { return {is_complex(c.type_of(as_is(c))) ? Real(as_is(c)) : as_is(c)}; }},
    {"aten::imag", [](Call& c) -> Ops { return {Imag(as_is(c))}; }},
    {"aten::conj_physical", [](Call& c) -> Ops { return {Conj(as_is(c))}; }},
    {"aten::_conj", [](Call& c) -> Ops { return {Conj(as_is(c))}; }},
    {"aten::resolve_conj", [](Call& c) -> Ops { return {as_is(c)}; }},
    {"aten::_neg_view", [](Call& c) -> Ops { return {Neg(as_is(c))}; }},
    {"aten::resolve_neg", [](Call& c) -> Ops { return {as_is(c)}; }},
};

// ---- Several operands ---------------------------------------------------------------------------

template <Op (*kFunction)(Operand, Op, Span<int64_t>)>
Ops binary(Call& c) {
  return {kFunction(c.in("self"), c.in("other"), {})};
}
template <Op (*kFunction)(Operand, Op, Span<int64_t>)>
Ops logical(Call& c) {
  Op x = c.broadcast(pred(c, c.op("self")), c.sizes());
  return {kFunction(x, c.broadcast(pred(c, c.op("other")), c.sizes()), {})};
}
// x + alpha y, or x - alpha y if `minus`; `x` and `y` are names of arguments.
Ops scaled_sum(Call& c, const char* x, const char* y, bool minus) {
  Op scaled = c.in(y);
  Number alpha = c.number("alpha", 1);
  if (alpha.inexact != complex<double>(1, 0)) {
    if (c.type() == ElementType::PRED) return {};
    c.widen();
    scaled = Mul(c.in(y), c.fill(alpha));
  }
  if (c.type() == ElementType::PRED) return {Or(c.in(x), scaled)};
  return {minus ? Sub(c.in(x), scaled) : Add(c.in(x), scaled)};
}

Ops divide(Call& c) {
  std::string_view mode = c.text("rounding_mode");
  bool whole = mode == "floor" || mode == "trunc";
  // Integer division by 0 is an error, which no opcode can raise.
  if (whole && !is_floating(c.type())) return {};
  // The opcode has the infinities of C99's Annex G, which the operator does not.
  if (is_complex(c.type())) return {};
  if (!whole) return binary<Div>(c);
  c.widen();
  if (mode == "floor") return {};
  return {truncated(c, Div(c.in("self"), c.in("other")))};
}
Ops fmod(Call& c) {
  if (!is_floating(c.type())) return {};
  return binary<Rem>(c);
}
// The result, even if it is 0, has the sign of the divisor.
Ops remainder(Call& c) {
  if (!is_floating(c.type())) return {};
  c.widen();
  Op x = c.in("self"), y = c.in("other");
  Op rest = Rem(x, y);
  Op negative = Lt(y, zero(c));
  Op nothing = Select(negative, c.fill(-0.0), zero(c));
  Op adjusted = Select(Ne(Lt(rest, zero(c)), negative), Add(rest, y), rest);
  return {Select(Eq(rest, zero(c)), nothing, adjusted)};
}

Ops power(Call& c) {
  bool number = !c.is_tensor("exponent");
  double exponent = number ? c.real("exponent") : 0;
  if (number && c.number("exponent").inexact.imag() != 0) return {};
  if (!c.is_tensor("self"))
    return is_floating(c.type()) ? Ops{Pow(c.in("self"), c.in("exponent"))} : Ops();
  Op x = c.in("self");
  if (number) {
    if (exponent == 2) return {Mul(x, x)};
    if (exponent == 3 && is_floating(c.type())) {
      c.widen();
      x = c.in("self");
      return {Mul(Mul(x, x), x)};
    }
    if (exponent == 1) return {x};
    if (is_floating(c.type())) {
      if (exponent == 0.5) return {Sqrt(x)};
      if (exponent == -0.5) return {Rsqrt(x)};
      if (exponent == -1) return {Div(one(c), x)};
    }
  }
  if (!is_floating(c.type())) return {};
  // The operator computes with whole exponents that float32 does not hold in double precision.
  if (number && c.type() != ElementType::F64 && exponent == std::trunc(exponent) &&
      static_cast<float>(exponent) != exponent) {
    return {};
  }
  return {Pow(x, c.in("exponent"))};
}

template <ComparisonDirection kDirection>
Ops compare(Call& c) {
  return {Compare(c.in("self"), c.in("other"), kDirection)};
}

// The greater operand, or the lesser one; the second of equal ones, as zeros of two signs are. If
// one is NaN, the result is NaN or, if `ignores_nan`, the other operand.
Op extreme_of(const Call& c, bool greater, bool ignores_nan, Op x, Op y) {
  if (!is_floating(c.type())) return greater ? Max(x, y) : Min(x, y);
  Op first = greater ? Gt(x, y) : Lt(x, y);
  return Select(Or(first, IsNan(ignores_nan ? y : x)), x, y);
}
template <bool kGreater, bool kIgnoresNan>
Ops extreme(Call& c) {
  return {extreme_of(c, kGreater, kIgnoresNan, c.in("self"), c.in("other"))};
}

// A tensor that is the only bound gives the greater or lesser one, as its kernel does; other bounds
// leave what is equal.
Ops clamp(Call& c) {
  Op x = c.in("self");
  bool alone = c.has("min") != c.has("max");
  for (const char* name : {"min", "max"}) {
    if (!c.has(name)) continue;
    Op bound = c.in(name);
    bool least = name[1] == 'i';
    if (!is_floating(c.type()) || (alone && c.is_tensor(name))) {
      x = extreme_of(c, least, false, x, bound);
    } else {
      x = Select(Or(least ? Lt(x, bound) : Gt(x, bound), IsNan(bound)), bound, x);
    }
  }
  return {x};
}

Ops where(Call& c) {
  Op condition = c.broadcast(pred(c, c.op("condition")), c.sizes());
  return {Select(condition, c.in("self"), c.in("other"))};
}
Ops masked_fill(Call& c) {
  Op mask = c.broadcast(pred(c, c.op("mask")), c.sizes());
  return {Select(mask, c.in("value"), c.in("self"))};
}

Ops lerp(Call& c) {
  c.widen();
  if (is_complex(c.type())) return {};
  Op x = c.in("self"), y = c.in("end"), weight = c.in("weight");
  Op gap = Sub(y, x);
  Op small = Lt(Abs(weight), c.fill(0.5));
  return {Select(small, Add(x, Mul(weight, gap)), Sub(y, Mul(gap, Sub(one(c), weight))))};
}
template <bool kDivide>
Ops add_scaled(Call& c) {
  if (!is_floating(c.type()) && (kDivide || !is_complex(c.type()))) return {};
  c.widen();
  Op x = c.in("tensor1"), y = c.in("tensor2");
  Number value = c.number("value", 1);
  if (value.inexact != complex<double>(1, 0)) x = Mul(x, c.fill(value));
  return {Add(c.in("self"), kDivide ? Div(x, y) : Mul(x, y))};
}

// x log(y), which is 0 if x is 0 and y is not NaN.
template <bool kLog1p>
Ops xlog(Call& c) {
  c.widen();
  Op x = c.in("self"), y = c.in("other");
  Op product = Mul(x, kLog1p ? Log1p(y) : Log(y));
  return {Select(IsNan(y), y, Select(Eq(x, zero(c)), zero(c), product))};
}
Ops logaddexp(Call& c) {
  if (!is_floating(c.type())) return {};
  c.widen();
  Op x = c.in("self"), y = c.in("other");
  Op sum = Add(Max(x, y), Log1p(Exp(Neg(Abs(Sub(x, y))))));
  // For equal infinities, x - y would be NaN.
  Op same = And(Eq(x, y), IsInf(x));
  return {Select(same, x, sum)};
}
Ops heaviside(Call& c) {
  if (!is_floating(c.type())) return {};
  Op x = c.in("self");
  Op step = c.convert(Gt(x, zero(c)), c.type());
  return {Select(Eq(x, zero(c)), c.in("values"), step)};
}

const Rule kBinary[] = {
    {"aten::add", [](Call& c) { return scaled_sum(c, "self", "other", false); }},
    {"aten::sub", [](Call& c) { return scaled_sum(c, "self", "other", true); }},
    {"aten::rsub", [](Call& c) { return scaled_sum(c, "other", "self", true); }},
    {"aten::mul",
     [](Call& c) -> Ops {
       return c.type() == ElementType::PRED ? Ops{And(c.in("self"), c.in("other"))}
                                            : binary<Mul>(c);
     }},
    {"aten::div", divide},
    {"aten::fmod", fmod},
    {"aten::remainder", remainder},
    {"aten::pow", power},
    {"aten::float_power", power},
    {"aten::maximum", extreme<true, false>},
    {"aten::minimum", extreme<false, false>},
    {"aten::fmax", extreme<true, true>},
    {"aten::fmin", extreme<false, true>},
    {"aten::eq", compare<ComparisonDirection::kEq>},
    {"aten::ne", compare<ComparisonDirection::kNe>},
    {"aten::lt", compare<ComparisonDirection::kLt>},
    {"aten::le", compare<ComparisonDirection::kLe>},
    {"aten::gt", compare<ComparisonDirection::kGt>},
    {"aten::ge", compare<ComparisonDirection::kGe>},
    {"aten::logical_and", logical<And>},
    {"aten::logical_or", logical<Or>},
    {"aten::logical_xor", logical<Xor>},
    {"aten::bitwise_and", binary<And>},
    {"aten::bitwise_or", binary<Or>},
    {"aten::bitwise_xor", binary<Xor>},
    {"aten::clamp", clamp},
    {"aten::clamp_min", clamp},
    {"aten::clamp_max", clamp},
    {"aten::where", where},
    {"aten::masked_fill", masked_fill},
    {"aten::lerp", lerp},
    {"aten::addcmul", add_scaled<false>},
    {"aten::addcdiv", add_scaled<true>},
    {"aten::xlogy", xlog<false>},
    {"aten::special_xlog1py", xlog<true>},
    {"aten::logaddexp", logaddexp},
    {"aten::heaviside", heaviside},
    {"aten::ldexp",
     [](Call& c) -> Ops { return {Mul(c.in("self"), Pow(c.fill(2), c.in("other")))}; }},
    {"aten::complex",
     [](Call& c) -> Ops {
       c.set_type(part_of_complex(c.type()));
       return {Complex(c.in("real"), c.in("imag"))};
     }},
};

}  // namespace

std::span<const Rule> unary_rules() { return kUnary; }
std::span<const Rule> binary_rules() { return kBinary; }

}  // namespace lamella::hlo::lowering
