// Rules: the reference implementation of each opcode. They are plain loops that define the meaning
// of the operations, and tests compare faster code with them.
#pragma once
#include <memory>
#include <span>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/hlo/infer.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// One run of a module, as the interface for rules that call computations.
class Run {
 public:
  // Runs a computation of the module; moves the arguments.
  virtual Value call(const Computation& computation, std::span<Value> arguments) = 0;
  // A run of the same module for another thread of this run; null where there is none.
  virtual std::unique_ptr<Run> another() const { return nullptr; }
  virtual ~Run() = default;
  RunContext context;
};

// One instruction to execute. Operands whose only reference is here may be moved and written.
struct Step {
  const Instruction& instruction;
  std::span<Value> operands;
  Run& run;
  // The shape of the result.
  const Shape& shape() const { return *instruction.shape; }
  Value result() const { return Value::uninitialized(instruction.shape); }
};

using Rule = Value (*)(Step& step);
Rule rule_of(Opcode opcode);

// Whether a custom call is one to "TopK", for which the rule of the opcode topk stands; throws if
// its shapes do not fit.
bool is_top_k_call(const Instruction& instruction);

// Declares evaluate_RULE for each name in the opcode table's column `rule`.
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, ...) \
  Value evaluate_##rule(Step& step);
#include "lamella/graph/hlo/opcode.def"

}  // namespace lamella::hlo
