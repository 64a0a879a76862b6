#include "lamella/layers/trace/operators.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "lamella/dispatch/registry.h"

namespace lamella::tracing {
namespace {

struct Known {
  uint64_t generation = 0;
  std::string schema;
  const OperatorFacts* facts = nullptr;
};
std::mutex known_mutex;
std::unordered_map<const lamella_operator*, Known>& known() {
  static auto* map = new std::unordered_map<const lamella_operator*, Known>;
  return *map;
}

// Operators that fill what they write, by name.
bool fills(const OperatorName& name) {
  return name.name == "fill_" || name.name == "zero_" || name.name == "copy_" ||
         name.name == "uniform_" || name.name == "normal_";
}

OperatorFacts read(const OperatorEntry& entry, const FunctionSchema& schema) {
  OperatorFacts facts;
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
  return facts;
}

}  // namespace

const OperatorFacts& facts_of(const lamella_operator* op) {
  uint64_t generation = Registry::generation();
  std::lock_guard lock(known_mutex);
  Known& entry = known()[op];
  if (entry.facts != nullptr && entry.generation == generation) return *entry.facts;
  auto* defined = const_cast<OperatorEntry*>(static_cast<const OperatorEntry*>(op));
  std::lock_guard registry_lock(Registry::get().mutex());
  // An operator that is gone is still named in graphs.
  if (entry.facts != nullptr && !defined->defined()) return *entry.facts;
  const FunctionSchema& schema = Registry::get().schema(defined);
  entry.generation = generation;
  if (entry.facts == nullptr || entry.schema != defined->canonical) {
    entry.schema = defined->canonical;
    entry.facts = new OperatorFacts(read(*defined, schema));  // others may hold the former
  }
  return *entry.facts;
}

}  // namespace lamella::tracing
