#include "lamella/layers/trace/operators.h"

#include <memory>

#include "lamella/dispatch/registry.h"

namespace lamella::tracing {
namespace {

// Operators that fill what they write, by name.
bool fills(const OperatorName& name) {
  return name.name == "fill_" || name.name == "zero_" || name.name == "copy_" ||
         name.name == "uniform_" || name.name == "normal_";
}

// Under the registry's mutex.
std::unique_ptr<OperatorFacts> read(OperatorEntry* op) {
  const OperatorEntry& entry = *op;
  const FunctionSchema& schema = Registry::get().schema(op);
  auto made = std::make_unique<OperatorFacts>();
  OperatorFacts& facts = *made;
  facts.name = entry.full_name();
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    facts.arguments.push_back(argument.name);
    facts.keyword_only.push_back(argument.kwarg_only);
    facts.schema_kinds.push_back(static_cast<uint8_t>(argument.type.without_optional().kind()));
    if ((argument.name == "running_mean" || argument.name == "running_var") && i < 64) {
      facts.statistics |= uint64_t{1} << i;
    }
    if (argument.name == "training" || argument.name == "use_input_stats") {
      facts.trains = static_cast<int32_t>(i);
    }
    if (argument.is_write()) facts.written.push_back(static_cast<uint16_t>(i));
  }
  facts.overwrites = fills(schema.name) || schema.kind() == SchemaKind::kOut;
  bool gives_numbers = false;
  for (const Argument& result : schema.returns) gives_numbers |= !result.type.holds_tensor();
  for (const std::string& tag : entry.tags) {
    facts.random |= tag == "nondeterministic_seeded";
    facts.reads_elements |= tag == "data_dependent_output" && gives_numbers;
  }
  return made;
}

}  // namespace

PlanRef<OperatorFacts> facts_of(const lamella_operator* op) {
  return Registry::get().hold_plan<OperatorFacts>(op, PlanKind::kTrace, &read);
}

}  // namespace lamella::tracing
