// Rules: how the reference evaluator does each opcode. Plain loops that say what the operation
// means; they are what faster code is compared with.
#pragma once
#include <span>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/hlo/infer.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// One run of a module: what rules that call computations need.
class Run {
 public:
  // Takes the arguments. The computation is one of the module's.
  virtual Value call(const Computation& computation, std::span<Value> arguments) = 0;
  RunContext context;

 protected:
  ~Run() = default;
};

// One instruction about to be done. Operands whose only reference is here may be taken and written.
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

// evaluate_RULE for each name in the table's column `rule`.
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, ...) \
  Value evaluate_##rule(Step& step);
#include "lamella/graph/hlo/opcode.def"

}  // namespace lamella::hlo
