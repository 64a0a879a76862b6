// What recording and reading graphs needs to know of an operator, read from its schema once.
// Internal to Lamella.
#pragma once
#include <string>
#include <vector>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"
#include "lamella/dispatch/operator_plan.h"
#include "lamella/schema/operator_facts.h"
#include "lamella/schema/type.h"

namespace lamella::tracing {

struct TracingPlan : OperatorPlan {
  std::string name;                    // "aten::add.Tensor"
  std::vector<std::string> arguments;  // names
  std::vector<uint8_t> keyword_only;   // one for each argument
  const OperatorFacts* facts = nullptr;
  std::vector<SchemaType> types;  // of the arguments
  // Normalisations write running statistics in training, although PyTorch's schemas do not say so:
  // the bits of those arguments, and the index of the argument that enables training, or -1.
  uint64_t statistics = 0;
  int32_t trains = -1;
  bool overwrites = false;  // what it writes, it does not read first
  bool random = false;
  bool acts = false;            // has side effects: is never dead
  bool reads_elements = false;  // returns numbers that depend on elements
};

// The plan of an operator that is defined, or was when its plan was last requested.
LAMELLA_PRIVATE_API PlanRef<TracingPlan> plan_of(const lamella_operator* op);

}  // namespace lamella::tracing
