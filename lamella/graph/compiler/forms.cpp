// UnitPlan: the form of a unit, which is equal for units whose code differs only in the addresses
// of the arrays that it reads and writes.
#include <algorithm>

#include "lamella/graph/compiler/units.h"
#include "lamella/graph/custom_call/function_call.h"

namespace lamella::hlo::compiler {
namespace {

// Writes everything that the code of a unit depends on as bytes. Instructions are numbered in the
// order in which they are met, and so are places.
class FormWriter {
 public:
  FormWriter(Emitter& emitter, bool tells_buffers) : e_(emitter), tells_buffers_(tells_buffers) {}

  void add(int64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof(number)); }
  void add(std::string_view text) {
    add(static_cast<int64_t>(text.size()));
    key += text;
  }
  void add_places(const std::vector<Place>& all) {
    add(static_cast<int64_t>(all.size()));
    for (const Place& place : all) {
      auto found = std::ranges::find(places, place);
      add(found - places.begin());
      if (found == places.end()) places.push_back(place);
      // Whether stores may be streamed, and the padding of stack arrays.
      const bool is_stack = place.kind == Place::Stack;
      on_stack = on_stack || is_stack;
      add(is_stack ? e_.stack_array_bytes(place)
                   : -1 - static_cast<int64_t>(tells_buffers_ && place.kind == Place::Buffer));
    }
  }
  // An instruction that the unit calculates, even if it has places.
  void add_calculated(const Instruction* i) {
    numbers_.emplace(i, static_cast<int64_t>(numbers_.size()));
    add_node(*i);
    for (const Instruction* operand : i->operands) add_read(operand);
  }

  std::string key;
  std::vector<Place> places;
  bool is_complete = true;  // false if the code may depend on more
  bool on_stack = false;

 private:
  void add_node(const Instruction& i) {
    add(static_cast<int64_t>(i.opcode));
    add(reinterpret_cast<intptr_t>(i.shape));  // equal shapes of a module are one object
    if (i.opcode == Opcode::Constant) {
      add({static_cast<const char*>(i.literal->data()), i.literal->bytes()});
    } else if (i.opcode == Opcode::Parameter) {
      add(i.parameter_number);
    }
    for (const Attribute& one : i.attributes) {
      if (one.key == AttributeKey::Metadata) continue;
      add(static_cast<int64_t>(one.key));
      if (attribute_kind(one.key) == AttributeKind::Computation) {
        add_computation(*one.computation);
      } else {
        add(to_string(one));
      }
    }
    add(static_cast<int64_t>(i.operands.size()));
  }
  void add_computation(const Computation& computation) {
    add(static_cast<int64_t>(computation.instructions.size()));
    for (const Instruction* i : computation.instructions) {
      add_node(*i);
      for (const Instruction* operand : i->operands) add(operand->index);
    }
    add(computation.root->index);
  }
  void add_read(const Instruction* i) {
    auto [known, is_new] = numbers_.emplace(i, static_cast<int64_t>(numbers_.size()));
    add(known->second);
    if (!is_new) return;
    std::vector<Place> stored = e_.places_of(i);
    const bool is_own = e_.places.count(i) != 0;
    add(is_own ? 1 : 0);
    add_places(stored);
    if (i->opcode == Opcode::GetTupleElement && !is_own) {
      const Instruction* start = e_.start_of(i);
      const Instruction* tuple = i->operands[0];
      if (start == nullptr && tuple->opcode == Opcode::Tuple && e_.places.count(tuple) == 0) {
        start = tuple->operands[static_cast<size_t>(i->integer(AttributeKey::Index))];
      }
      add(start != nullptr ? 1 : 0);
      if (start != nullptr) return add_read(start);
    }
    const bool is_alias =
        i->opcode == Opcode::Reshape || i->opcode == Opcode::Bitcast || i->opcode == Opcode::Copy;
    if (!stored.empty() && !(is_alias && !is_own)) {
      // The element of a tuple may be in a register, if the unit calculates the tuple.
      add(reinterpret_cast<intptr_t>(i->shape));
      if (i->opcode != Opcode::GetTupleElement) return;
      auto made = numbers_.find(i->operands[0]);
      add(made == numbers_.end() ? -1 : made->second);
      add(i->integer(AttributeKey::Index));
      return;
    }
    Family family = opcode_family(i->opcode);
    is_complete =
        is_complete && (family == Family::Elementwise || family == Family::Movement ||
                        family == Family::Reduction || i->opcode == Opcode::GetTupleElement ||
                        family == Family::Constant || function_call(*i) != nullptr);
    if (!is_complete) return;
    add_node(*i);
    for (const Instruction* operand : i->operands) add_read(operand);
  }

  Emitter& e_;
  const bool tells_buffers_;
  std::unordered_map<const Instruction*, int64_t> numbers_;
};

}  // namespace

std::optional<UnitForm> UnitPlan::form_of(const Unit& unit) {
  const Opcode opcode = unit.members[0].instruction->opcode;
  if (unit.kind == Unit::Other && opcode != Opcode::ReduceWindow && opcode != Opcode::Scatter &&
      opcode != Opcode::Sort) {
    return std::nullopt;
  }
  int64_t elements = 1;
  for (int64_t size : unit.sizes) elements *= size;
  FormWriter form(e_, elements * 4 >= kLargeBytes);
  for (int64_t number : {static_cast<int64_t>(unit.kind), int64_t{unit.rows}, int64_t{unit.weight},
                         static_cast<int64_t>(unit.sizes.size())}) {
    form.add(number);
  }
  for (int64_t size : unit.sizes) form.add(size);
  for (const Member& member : unit.members) {
    const Instruction* i = member.instruction;
    const int64_t flags = (member.is_stored ? 1 : 0) + (member.is_kept ? 2 : 0);
    int64_t weight = unit.kind == Unit::Loops ? weight_of(i) : 0;
    int64_t operand = i->opcode == Opcode::Reduce ? weight_of_reading(i->operands[0]) : 0;
    for (int64_t number :
         {static_cast<int64_t>(member.level), int64_t{member.phase}, flags, weight, operand}) {
      form.add(number);
    }
    form.add_calculated(i);
    if (member.is_stored) form.add_places(e_.places.at(i));
  }
  if (!form.is_complete) return std::nullopt;
  return UnitForm{std::move(form.key), std::move(form.places), form.on_stack};
}

}  // namespace lamella::hlo::compiler
