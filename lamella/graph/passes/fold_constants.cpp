// Evaluates instructions on constants.
#include "lamella/graph/passes/fold_constants.h"

#include <algorithm>

#include "lamella/core/error.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

constexpr int64_t kMaxElements = 1024;  // of a result
constexpr int64_t kMaxRead = 1 << 16;   // elements of all operands
constexpr int64_t kMaxReducer = 16;     // instructions of a reducer

bool is_foldable(Opcode opcode) {
  switch (opcode) {
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::Reduce:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
      return true;
    default:
      return opcode_family(opcode) == Family::Elementwise &&
             opcode_effects(opcode) == Effects::Pure;
  }
}

// Runs reducers, which contain only elementwise instructions.
class Folding final : public Run {
 public:
  Value call(const Computation& computation, std::span<Value> arguments) override {
    std::vector<Value> values(computation.instructions.size());
    for (const Instruction* i : computation.instructions) {
      Value& to = values[static_cast<size_t>(i->index)];
      if (i->opcode == Opcode::Parameter) {
        to = arguments[static_cast<size_t>(i->parameter_number)];
        continue;
      }
      if (i->opcode == Opcode::Constant) {
        to = Value::of_literal(i->shape, *i->literal);
        continue;
      }
      std::vector<Value> operands;
      for (const Instruction* operand : i->operands) {
        operands.push_back(values[static_cast<size_t>(operand->index)]);
      }
      Step step{*i, operands, *this};
      to = rule_of(i->opcode)(step);
    }
    return values[static_cast<size_t>(computation.root->index)];
  }
};
bool is_small_function(const Computation& computation) {
  return static_cast<int64_t>(computation.instructions.size()) <= kMaxReducer &&
         std::ranges::all_of(computation.instructions, [](const Instruction* i) {
           return i->shape->is_scalar() &&
                  (i->opcode == Opcode::Parameter || i->opcode == Opcode::Constant ||
                   (is_foldable(i->opcode) && i->opcode != Opcode::Reduce));
         });
}

bool is_wanted(const Instruction& i) {
  if (!is_foldable(i.opcode) || i.operands.empty() || !i.shape->is_array() ||
      !i.shape->is_static() || i.shape->elements() > kMaxElements) {
    return false;
  }
  int64_t read = 0;
  for (const Instruction* operand : i.operands) {
    if (operand->opcode != Opcode::Constant || !operand->shape->is_array()) return false;
    read += operand->shape->elements();
  }
  if (read > kMaxRead || i.shape->elements() > std::max<int64_t>(read, 1)) return false;
  return i.opcode != Opcode::Reduce || is_small_function(*i.computation(AttributeKey::ToApply));
}

// A constant tuple as a tuple of constants.
Instruction* apart(Rewriter& to, const Literal& literal) {
  if (!literal.shape().is_tuple()) return to.constant(literal.clone());
  std::vector<Instruction*> elements;
  for (const Literal& one : literal.elements()) elements.push_back(apart(to, one));
  return to.add(Opcode::Tuple, literal.shape(), elements);
}

}  // namespace

int64_t fold_constants(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      if (i->opcode == Opcode::Constant && i->shape->is_tuple()) {
        return apart(rewriter, *i->literal);
      }
      if (!is_wanted(*i)) return nullptr;
      Folding run;
      std::vector<Value> operands;
      for (const Instruction* operand : i->operands) {
        operands.push_back(Value::of_literal(operand->shape, *operand->literal));
      }
      Step step{*i, operands, run};
      try {
        return rewriter.constant(rule_of(i->opcode)(step).to_literal());
      } catch (const Error&) {
        return nullptr;  // an error must be raised when the program runs
      }
    });
  }
  return changed;
}

}  // namespace lamella::hlo
