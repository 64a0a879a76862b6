// Applies identities of elementwise instructions. Only identities that keep every bit are used:
// x * 0 is not 0 for floating-point numbers, and x + 0 is not x for -0.
#include "lamella/graph/passes/simplify.h"

#include <cmath>
#include <limits>
#include <optional>

#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

// The number that an operand repeats, if its type is one of these.
std::optional<double> number(const Instruction* i) {
  const Literal* one = repeated_constant(i);
  if (one == nullptr) return std::nullopt;
  ElementType type = one->shape().element_type();
  if (is_ordinary_float(type)) return one->real_at(0);
  if (is_integral(type) || type == ElementType::PRED) {
    int64_t value = one->integer_at(0);
    // Larger integers are not exact as double.
    if (std::abs(static_cast<double>(value)) < 9e15) return static_cast<double>(value);
  }
  return std::nullopt;
}
bool is_zero(std::optional<double> n, bool negative) {
  return n && *n == 0 && std::signbit(*n) == negative;
}

// 1 / n if that is exact and not a denormal.
std::optional<double> exact_reciprocal(double n, ElementType type) {
  int exponent = 0;
  if (!std::isfinite(n) || std::abs(std::frexp(n, &exponent)) != 0.5) return std::nullopt;
  if (std::abs(exponent - 1) > element_row(type).bias - 1) return std::nullopt;
  return 1 / n;
}

// True if every value of `from` is a value of `to`.
bool is_exact_in(ElementType from, ElementType to) {
  auto digits = [](ElementType type) { return element_row(type).mantissa_bits + 1; };
  if (is_ordinary_float(from) && is_ordinary_float(to)) {
    return (to == ElementType::F32 || to == ElementType::F64) && digits(from) < digits(to);
  }
  if (!is_integral(from))
    return from == ElementType::PRED && (is_integral(to) || is_ordinary_float(to));
  if (is_integral(to)) {
    return element_kind(to) == element_kind(from) && element_bits(to) >= element_bits(from);
  }
  return is_ordinary_float(to) && element_bits(from) <= digits(to);
}

class Simplifier {
 public:
  Simplifier(Rewriter& to, Instruction* i) : to_(to), i_(i), type_(i->shape->element_type()) {}

  Instruction* simpler() {
    if (opcode_family(i_->opcode) != Family::Elementwise || !i_->shape->is_array() ||
        i_->operands.empty() || !i_->shape->is_static()) {
      return nullptr;
    }
    if (Instruction* repeated = of_repeated()) return repeated;
    switch (i_->operands.size()) {
      case 1:
        return unary(i_->operands[0]);
      case 2:
        return binary(i_->operands[0], i_->operands[1]);
      default:
        return i_->opcode == Opcode::Select ? select() : nullptr;
    }
  }

 private:
  // A function of broadcast numbers becomes a broadcast of the function of the numbers.
  Instruction* of_repeated() {
    if (i_->shape->rank() == 0 || i_->shape->elements() == 0) return nullptr;
    switch (i_->opcode) {
      case Opcode::Rng:
      case Opcode::RngBitGenerator:
      case Opcode::RngGetAndUpdateState:
      case Opcode::StochasticConvert:
      case Opcode::BitcastConvert:
        return nullptr;
      default:
        break;
    }
    for (const Instruction* operand : i_->operands) {
      if (repeated_constant(operand) == nullptr || operand->opcode == Opcode::Constant) {
        if (!operand->shape->is_scalar()) return nullptr;
      }
    }
    std::vector<Instruction*> scalars;
    for (Instruction* operand : i_->operands) {
      const Literal* one = repeated_constant(operand);
      if (one == nullptr) return nullptr;
      if (operand->shape->is_scalar()) {
        scalars.push_back(operand);
        continue;
      }
      while (operand->operands.size() == 1 && !operand->shape->is_scalar()) {
        operand = operand->operands[0];
      }
      scalars.push_back(operand->shape->is_scalar() ? operand : to_.reshape(operand, {}));
    }
    Instruction* made =
        to_.add(i_->opcode, Shape::scalar(type_), scalars,
                std::vector<Attribute>(i_->attributes.begin(), i_->attributes.end()));
    return to_.broadcast(made, *i_->shape, {});
  }

  Instruction* unary(Instruction* x) {
    switch (i_->opcode) {
      case Opcode::Convert: {
        ElementType from = x->shape->element_type();
        if (from == type_) return x;
        if (x->opcode == Opcode::Convert) {
          ElementType first = x->operand_shape(0).element_type();
          if (!is_exact_in(first, from)) return nullptr;
          if (first == type_) return x->operands[0];
          // If the conversion in between is exact, one direct conversion gives the same.
          bool plain = is_ordinary_float(first) && is_ordinary_float(type_);
          return plain ? to_.add(Opcode::Convert, *i_->shape, {x->operands[0]}) : nullptr;
        }
        return nullptr;
      }
      case Opcode::Negate:
      case Opcode::Not:
        return x->opcode == i_->opcode ? x->operands[0] : nullptr;
      case Opcode::Abs:
      case Opcode::Ceil:
      case Opcode::Floor:
      case Opcode::RoundNearestAfz:
      case Opcode::RoundNearestEven:
      case Opcode::Sign:
        return x->opcode == i_->opcode && x->shape->element_type() == type_ ? x : nullptr;
      default:
        return nullptr;
    }
  }

  Instruction* binary(Instruction* x, Instruction* y) {
    if (x->shape->element_type() != type_) return nullptr;
    bool floats = is_ordinary_float(type_), integers = is_integral(type_);
    bool truth = type_ == ElementType::PRED;
    if (!floats && !integers && !truth) return nullptr;
    std::optional<double> left = number(x), right = number(y);
    switch (i_->opcode) {
      case Opcode::Add:
        if (truth) return nullptr;
        if (is_zero(right, floats)) return x;
        return is_zero(left, floats) ? y : nullptr;
      case Opcode::Subtract:
        if (is_zero(right, false)) return x;
        return integers && x == y ? to_.full(*i_->shape, 0) : nullptr;
      case Opcode::Multiply:
        if (truth) return nullptr;
        if (right == 1) return x;
        if (left == 1) return y;
        return integers && (left == 0 || right == 0) ? to_.full(*i_->shape, 0) : nullptr;
      case Opcode::Divide:
        if (right == 1) return x;
        if (floats && right) {
          if (auto factor = exact_reciprocal(*right, type_)) {
            return to_.add(Opcode::Multiply, *i_->shape, {x, to_.full(*i_->shape, *factor)});
          }
        }
        return nullptr;
      case Opcode::Power:
        if (!floats || !right) return nullptr;
        if (*right == 1) return x;
        if (*right == 2) return to_.add(Opcode::Multiply, *i_->shape, {x, x});
        if (*right == 0) return to_.full(*i_->shape, 1);
        return *right == -1 ? to_.add(Opcode::Divide, *i_->shape, {to_.full(*i_->shape, 1), x})
                            : nullptr;
      case Opcode::Maximum:
      case Opcode::Minimum:
        return x == y ? x : nullptr;
      case Opcode::And:
        if (x == y) return x;
        if (left == 0 || right == 0) return to_.full(*i_->shape, 0);
        return ones(right) ? x : ones(left) ? y : nullptr;
      case Opcode::Or:
        if (x == y) return x;
        if (right == 0) return x;
        if (left == 0) return y;
        return truth && (left == 1 || right == 1) ? to_.full(*i_->shape, 1) : nullptr;
      case Opcode::Xor:
        if (x == y) return to_.full(*i_->shape, 0);
        return right == 0 ? x : left == 0 ? y : nullptr;
      case Opcode::ShiftLeft:
      case Opcode::ShiftRightArithmetic:
      case Opcode::ShiftRightLogical:
        return right == 0 ? x : nullptr;
      default:
        return nullptr;
    }
  }
  bool ones(std::optional<double> n) const {
    return n && (type_ == ElementType::PRED ? *n == 1 : *n == -1);
  }

  Instruction* select() {
    Instruction *yes = i_->operands[1], *no = i_->operands[2];
    if (yes == no) return yes;
    std::optional<double> which = number(i_->operands[0]);
    if (which) return *which != 0 ? yes : no;
    if (type_ != ElementType::PRED || !i_->operand_shape(0).same_dimensions(*i_->shape)) {
      return nullptr;
    }
    std::optional<double> left = number(yes), right = number(no);
    return left == 1 && right == 0 ? i_->operands[0] : nullptr;
  }

  Rewriter& to_;
  Instruction* i_;
  ElementType type_;
};

}  // namespace

int64_t simplify_elementwise(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) { return Simplifier(rewriter, i).simpler(); });
  }
  return changed;
}

}  // namespace lamella::hlo
