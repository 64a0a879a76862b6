// Writes the plan of a program as a module, with regions and loops as fusions.
#include "lamella/graph/execute/planned_module.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/copy.h"
#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {
namespace {

using Instructions = std::vector<const Instruction*>;

// A computation under construction, and its instructions for those of the program.
struct Scope {
  Computation* to;
  std::unordered_map<const Instruction*, Instruction*> made;
};

// The instructions that `wanted` depend on and the scope does not have, operands first.
Instructions missing(const Scope& scope, Instructions wanted) {
  Instructions found;
  std::unordered_set<const Instruction*> seen;
  while (!wanted.empty()) {
    const Instruction* i = wanted.back();
    wanted.pop_back();
    if (scope.made.count(i) != 0 || !seen.insert(i).second) continue;
    found.push_back(i);
    wanted.insert(wanted.end(), i->operands.begin(), i->operands.end());
  }
  std::ranges::sort(found, {}, [](const Instruction* i) { return i->index; });
  return found;
}
// True for instructions that are not wrapped in a fusion, which would add no information.
bool is_alone(const Instruction& i) {
  return i.opcode == Opcode::While || i.opcode == Opcode::Conditional || i.opcode == Opcode::Call ||
         i.opcode == Opcode::Fusion || i.opcode == Opcode::CustomCall;
}
void append_places(const Shape& shape, std::vector<int64_t> place,
                   std::vector<std::vector<int64_t>>* places) {
  if (shape.is_array()) {
    places->push_back(std::move(place));
    return;
  }
  for (size_t e = 0; e < shape.tuple_shapes().size(); ++e) {
    std::vector<int64_t> inner = place;
    inner.push_back(static_cast<int64_t>(e));
    append_places(shape.tuple_shapes()[e], std::move(inner), places);
  }
}

class PlanWriter {
 public:
  PlanWriter(Module& to, std::span<const PlannedComputation> computations,
             std::span<const RegionFacts> regions)
      : to_(to), computations_(computations), regions_(regions) {
    for (const PlannedComputation& one : computations) {
      first_region_.push_back(region_count_);
      region_count_ += static_cast<size_t>(std::ranges::count_if(
          one.steps, [](const ScheduledStep& step) { return step.instruction == nullptr; }));
    }
  }

  // Writes a computation, after those that its steps call.
  Computation* write(size_t n) {
    const PlannedComputation& from = computations_[n];
    if (auto known = copied_.find(from.computation); known != copied_.end()) return known->second;
    for (const ScheduledStep& step : from.steps) {
      if (step.instruction == nullptr) continue;
      for_each_called(*step.instruction, [&](const Computation& called) {
        for (size_t c = 0; c < computations_.size(); ++c) {
          if (computations_[c].computation == &called) write(c);
        }
      });
    }
    for (const Instruction* i : from.computation->instructions) names_.emplace(i->name, 0);
    Scope scope = begin(from.computation->name);
    for (const Instruction* parameter : from.computation->parameters) {
      add_parameter(scope, parameter);
    }
    size_t region = first_region_[n];
    for (const ScheduledStep& step : from.steps) {
      if (step.instruction == nullptr) {
        write_region(scope, step.region, regions_[region++]);
      } else {
        copy(scope, {step.instruction});
      }
    }
    copy(scope, {from.computation->root});
    finish(scope, {from.computation->root});
    copied_.emplace(from.computation, scope.to);
    return scope.to;
  }

 private:
  Scope begin(std::string_view wanted) {
    return {to_.add_computation(to_.free_computation_name(wanted)), {}};
  }
  // Sets the root: the result, or a tuple of several results.
  void finish(Scope& scope, const Instructions& results) {
    scope.to->root = scope.made.at(results.front());
    if (results.size() == 1) return;
    std::vector<Instruction*> elements;
    for (const Instruction* i : results) elements.push_back(scope.made.at(i));
    scope.to->root =
        add(scope, Opcode::Tuple, new_name("results"), shape_of(results), elements, {});
  }
  void add_parameter(Scope& scope, const Instruction* i) {
    Instruction* made = add(scope, Opcode::Parameter, i->name, *i->shape, {}, {});
    made->parameter_number = static_cast<int64_t>(scope.to->parameters.size());
    scope.to->parameters.push_back(made);
    scope.made[i] = made;
  }
  // A name that no instruction of the program has.
  std::string new_name(std::string_view wanted) {
    std::string name(wanted);
    if (names_.emplace(name, 0).second) return name;
    int64_t& last = names_[name];
    do {
      name = str(wanted, ".", ++last);
    } while (!names_.emplace(name, 0).second);
    return name;
  }
  Instruction* add(Scope& scope, Opcode opcode, std::string_view name, const Shape& shape,
                   const std::vector<Instruction*>& operands,
                   const std::vector<Attribute>& attributes) {
    return to_.add_instruction(scope.to, opcode, name, to_.intern(shape), operands, attributes);
  }
  // Copies the wanted instructions and everything that they depend on.
  void copy(Scope& scope, const Instructions& wanted) {
    for (const Instruction* i : missing(scope, wanted)) {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i->operands) operands.push_back(scope.made.at(operand));
      scope.made[i] = copy_instruction(to_, scope.to, *i, operands, copied_, true);
    }
  }

  void write_region(Scope& scope, const Region& region, const RegionFacts& facts) {
    const char* kind = region.blocks ? "blocks" : "machine_code";
    Scope inner = begin(kind);
    std::unordered_map<std::string_view, const Instruction*> by_name;
    for (const Instruction* i : region.instructions) by_name.emplace(i->name, i);
    for (const Instruction* input : region.inputs) add_parameter(inner, input);
    for (const std::vector<std::string>& loop : facts.loops) {
      Instructions written;
      for (const std::string& name : loop) {
        auto found = by_name.find(name);
        if (found != by_name.end() && inner.made.count(found->second) == 0) {
          written.push_back(found->second);
        }
      }
      if (!written.empty()) write_loop(inner, written);
    }
    copy(inner, region.outputs);
    finish(inner, region.outputs);
    std::vector<Attribute> attributes = {text(AttributeKey::Kind, "kCustom"), calls(inner)};
    std::vector<std::vector<int64_t>> places;
    for (size_t o = 0; o < region.outputs.size(); ++o) {
      append_places(*region.outputs[o]->shape,
                    region.outputs.size() == 1 ? std::vector<int64_t>()
                                               : std::vector<int64_t>{static_cast<int64_t>(o)},
                    &places);
    }
    std::vector<OperandAlias> aliases;
    for (auto [array, operand] : facts.shared) {
      // A parameter's memory is taken over only if the caller gives it up, which a plan does not
      // know.
      if (region.inputs[static_cast<size_t>(operand)]->opcode == Opcode::Parameter) continue;
      aliases.push_back({places[static_cast<size_t>(array)], operand, {}});
    }
    if (!aliases.empty()) attributes.push_back(aliasing(std::move(aliases)));
    attributes.push_back(text(AttributeKey::FrontendAttributes,
                              str("{temporary_bytes=\"", facts.temporary_bytes, "\"}")));
    add_fusion(scope, region.inputs, region.outputs, kind, attributes);
  }

  void write_loop(Scope& scope, const Instructions& written) {
    Instructions inside = missing(scope, written);
    bool alone = std::ranges::any_of(inside, [](const Instruction* i) { return is_alone(*i); });
    if (inside.size() == 1 || alone) return copy(scope, written);
    Scope inner = begin(str("fused_", written.back()->name));
    Instructions inputs;
    for (const Instruction* i : inside) {
      for (const Instruction* operand : i->operands) {
        bool is_given = scope.made.count(operand) != 0 && operand->opcode != Opcode::Constant;
        if (!is_given || inner.made.count(operand) != 0) continue;
        inputs.push_back(operand);
        add_parameter(inner, operand);
      }
    }
    copy(inner, written);
    finish(inner, written);
    add_fusion(scope, inputs, written, str("fusion.", written.back()->name),
               {text(AttributeKey::Kind, "kLoop"), calls(inner)});
  }

  void add_fusion(Scope& scope, const Instructions& inputs, const Instructions& outputs,
                  std::string_view name, const std::vector<Attribute>& attributes) {
    std::vector<Instruction*> operands;
    for (const Instruction* i : inputs) operands.push_back(scope.made.at(i));
    Instruction* fusion =
        add(scope, Opcode::Fusion, new_name(name), shape_of(outputs), operands, attributes);
    if (outputs.size() == 1) {
      scope.made[outputs[0]] = fusion;
      return;
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
      Attribute index{};
      index.key = AttributeKey::Index;
      index.integer = static_cast<int64_t>(o);
      scope.made[outputs[o]] = add(scope, Opcode::GetTupleElement, outputs[o]->name,
                                   *outputs[o]->shape, {fusion}, {index});
    }
  }

  static Shape shape_of(const Instructions& results) {
    if (results.size() == 1) return *results[0]->shape;
    std::vector<Shape> shapes;
    for (const Instruction* i : results) shapes.push_back(*i->shape);
    return Shape::tuple(shapes);
  }
  Attribute text(AttributeKey key, std::string_view value) {
    Attribute made{};
    made.key = key;
    made.size = static_cast<uint32_t>(value.size());
    made.text_data = to_.arena().copy(value).data();
    return made;
  }
  static Attribute calls(const Scope& scope) {
    Attribute made{};
    made.key = AttributeKey::Calls;
    made.computation = scope.to;
    return made;
  }
  Attribute aliasing(std::vector<OperandAlias> aliases) {
    Attribute made{};
    made.key = AttributeKey::OutputToOperandAliasing;
    made.size = static_cast<uint32_t>(aliases.size());
    made.alias_data = to_.arena().make<std::vector<OperandAlias>>(std::move(aliases))->data();
    return made;
  }

  Module& to_;
  std::span<const PlannedComputation> computations_;
  std::span<const RegionFacts> regions_;
  std::vector<size_t> first_region_;
  size_t region_count_ = 0;
  std::unordered_map<const Computation*, Computation*> copied_;
  // The names of the program's instructions and of new ones, and the last number behind each.
  std::unordered_map<std::string, int64_t> names_;
};

}  // namespace

std::unique_ptr<Module> planned_module(const Module& program,
                                       std::span<const PlannedComputation> computations,
                                       std::span<const RegionFacts> regions) {
  auto made = std::make_unique<Module>(program.name);
  made->is_scheduled = true;
  made->entry = PlanWriter(*made, computations, regions).write(0);
  order_computations(*made);
  return made;
}

}  // namespace lamella::hlo
