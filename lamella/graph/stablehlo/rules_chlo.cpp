// Functions that StableHLO has by name alone: operations of CHLO, composites and custom calls that
// stand for them.
#include "lamella/graph/builder/builder.h"
#include "lamella/graph/builder/constant.h"
#include "lamella/graph/builder/elementwise.h"
#include "lamella/graph/builder/lib/math.h"
#include "lamella/graph/hlo/copy.h"
#include "lamella/graph/hlo/infer.h"
#include "lamella/graph/stablehlo/translation.h"

namespace lamella::hlo::stablehlo {
namespace {

// Composites of CHLO, and custom calls of MHLO, that are opcodes here.
struct Opcoded {
  std::string_view name;
  Opcode opcode;
};
constexpr Opcoded kOpcoded[] = {
    {"acos", Opcode::Acos},   {"acosh", Opcode::Acosh}, {"asin", Opcode::Asin},
    {"asinh", Opcode::Asinh}, {"atanh", Opcode::Atanh}, {"cosh", Opcode::Cosh},
    {"sinh", Opcode::Sinh},   {"tan", Opcode::Tan},     {"erf", Opcode::Erf},
    {"top_k", Opcode::TopK},  {"topk", Opcode::TopK},   {"mulhi", Opcode::Mulhi},
};
std::optional<Opcode> opcode_of(std::string_view name) {
  if (!name.starts_with("chlo.") && !name.starts_with("mhlo.")) return std::nullopt;
  name.remove_prefix(5);
  for (const Opcoded& one : kOpcoded) {
    if (one.name == name) return one.opcode;
  }
  return std::nullopt;
}
// Makes the opcode's instruction; false if the opcode does not take these operands.
}  // namespace

bool translate_named(Translation& t, const Operation& op, std::string_view name,
                     const Attribute* attributes) {
  const std::optional<Opcode> opcode = opcode_of(name);
  if (!opcode) return false;
  Instructions operands = t.operands(op);
  const int wanted = opcode_operands(*opcode);
  if (operands.size() != static_cast<size_t>(wanted)) return false;
  for (const Instruction* one : operands) {
    if (!one->shape->is_array() || is_complex(one->shape->element_type()) ||
        !takes_type(*opcode, one->shape->element_type())) {
      return false;
    }
  }
  AttributeList list = t.attributes(op);
  Operation inner;  // whose attributes are the composite's
  inner.name = name;
  inner.position = op.position;
  inner.attributes = attributes != nullptr ? attributes->entries : op.attributes;
  if (*opcode == Opcode::TopK) {
    list.integer(AttributeKey::K, t.integer(inner, "k", -1));
    list.flag(AttributeKey::Largest, t.integer(inner, "largest", 1) != 0);
  }
  Shape shape = t.result_shape(op);
  Instruction* made = t.add(*opcode, operands, std::move(list), shape);
  op.results.size() == 1 ? t.give(op, {made}) : t.give_parts(op, made);
  return true;
}

namespace {

// The derivatives of digamma, by Hurwitz' zeta function: (-1)^(n+1) n! zeta(n+1, x).
Op polygamma(Op n, Op x) {
  Op one = ScalarLike(n, 1.0), two = ScalarLike(n, 2.0), next = Add(n, one);
  Op sign = Sub(Mul(two, Rem(n, two)), one);
  Op value = Mul(Mul(sign, Exp(Lgamma(next))), Zeta(next, x));
  Op is_order = And(Ge(n, ScalarLike(n, 0.0)), Eq(n, Floor(n)));
  Op none = ScalarLike(n, std::numeric_limits<double>::quiet_NaN());
  Op all = Select(Eq(n, ScalarLike(n, 0.0)), Digamma(x), value);
  return Select(is_order, all, Add(none, ScalarLike(n, 0.0)));
}
struct Function {
  std::string_view name;
  Op (*unary)(Operand x);
  Op (*binary)(Operand x, Op y);
};
constexpr Function kFunctions[] = {
    {"atan", [](Operand x) { return Atan(x); }, nullptr},
    {"acos", [](Operand x) { return Acos(x); }, nullptr},
    {"acosh", [](Operand x) { return Acosh(x); }, nullptr},
    {"asin", [](Operand x) { return Asin(x); }, nullptr},
    {"asinh", [](Operand x) { return Asinh(x); }, nullptr},
    {"atanh", [](Operand x) { return Atanh(x); }, nullptr},
    {"cosh", [](Operand x) { return Cosh(x); }, nullptr},
    {"sinh", [](Operand x) { return Sinh(x); }, nullptr},
    {"bessel_i1e", [](Operand x) { return BesselI1e(x); }, nullptr},
    {"conj", [](Operand x) { return Conj(x); }, nullptr},
    {"digamma", [](Operand x) { return Digamma(x); }, nullptr},
    {"erf", [](Operand x) { return Erf(x); }, nullptr},
    {"erf_inv", [](Operand x) { return ErfInv(x); }, nullptr},
    {"erfc", [](Operand x) { return Erfc(x); }, nullptr},
    {"is_inf", [](Operand x) { return IsInf(x); }, nullptr},
    {"is_neg_inf", [](Operand x) { return IsNegInf(x); }, nullptr},
    {"is_pos_inf", [](Operand x) { return IsPosInf(x); }, nullptr},
    {"lgamma", [](Operand x) { return Lgamma(x); }, nullptr},
    {"square", [](Operand x) { return Mul(x, x); }, nullptr},
    {"tan", [](Operand x) { return Tan(x); }, nullptr},
    {"next_after", nullptr, [](Operand x, Op y) { return NextAfter(x, y); }},
    {"polygamma", nullptr, [](Operand n, Op x) { return polygamma(n, x); }},
    {"zeta", nullptr, [](Operand x, Op q) { return Zeta(x, q); }},
};

}  // namespace

// An operation of CHLO itself, which a text may have: an opcode, or a function of the builder.
void translate_chlo(Translation& t, const Operation& op) {
  if (translate_named(t, op, op.name, nullptr)) return;
  std::string_view name = op.name.substr(5);
  for (const Function& one : kFunctions) {
    if (one.name != name) continue;
    Instructions operands = t.operands(op, one.unary != nullptr ? 1 : 2);
    Builder builder(op.name);
    std::vector<Op> parameters;
    for (size_t i = 0; i < operands.size(); ++i) {
      parameters.push_back(
          Parameter(&builder, static_cast<int64_t>(i), *operands[i]->shape, str("Arg_", i)));
    }
    Op root =
        one.unary != nullptr ? one.unary(parameters[0]) : one.binary(parameters[0], parameters[1]);
    auto built = builder.Build(root);
    if (!built.ok()) t.fail(op, built.status().message());
    std::unordered_map<const Computation*, Computation*> copied;
    AttributeList list = t.attributes(op);
    list.computation(AttributeKey::ToApply,
                     copy_computation(t.module(), *built->module()->entry, copied));
    t.give(op, {t.add(Opcode::Call, operands, std::move(list), t.result_shape(op))});
    return;
  }
  t.fail(op, "expected an operation of StableHLO or a function of CHLO");
}

}  // namespace lamella::hlo::stablehlo
