// Copies of computations.
#include "lamella/graph/hlo/copy.h"

#include "lamella/core/error.h"
#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {
namespace {

using Copied = std::unordered_map<const Computation*, Computation*>;

Attribute copy_attribute(Module& to, const Attribute& from, Copied& copied,
                         const std::vector<Instruction*>& instructions, bool share) {
  Arena& arena = to.arena();
  Attribute made = from;
  switch (attribute_kind(from.key)) {
    case AttributeKind::Integer:
    case AttributeKind::Boolean:
    case AttributeKind::Real:
      break;
    case AttributeKind::Integers:
      made.integer_data = arena.copy(from.integers()).data();
      break;
    case AttributeKind::Word:
    case AttributeKind::String:
    case AttributeKind::Text:
      made.text_data = arena.copy(from.text()).data();
      break;
    case AttributeKind::Window:
      made.window_data = arena.copy(from.window()).data();
      break;
    case AttributeKind::Padding:
      made.padding_data = arena.copy(from.padding()).data();
      break;
    case AttributeKind::Slices:
      made.slice_data = arena.copy(from.slices()).data();
      break;
    case AttributeKind::DimLabels:
      made.convolution = arena.make<ConvolutionDimensions>(*from.convolution);
      break;
    case AttributeKind::Computation:
      made.computation = copy_computation(to, *from.computation, copied, share);
      break;
    case AttributeKind::Computations: {
      std::vector<Computation*> list;
      for (Computation* one : from.computations()) {
        list.push_back(copy_computation(to, *one, copied, share));
      }
      made.computation_data = arena.copy(std::span<Computation* const>(list)).data();
      break;
    }
    case AttributeKind::Instructions: {
      std::vector<Instruction*> list;
      for (Instruction* one : from.instructions()) {
        list.push_back(instructions.at(static_cast<size_t>(one->index)));
      }
      made.instruction_data = arena.copy(std::span<Instruction* const>(list)).data();
      break;
    }
    case AttributeKind::Shapes: {
      std::vector<const Shape*> list;
      for (const Shape* one : from.shapes()) list.push_back(to.intern(*one));
      made.shape_data = arena.copy(std::span<const Shape* const>(list)).data();
      break;
    }
    case AttributeKind::ShapeOf:
      made.shape = to.intern(*from.shape);
      break;
    case AttributeKind::Aliasing: {
      auto aliases = from.aliases();
      made.alias_data =
          arena.make<std::vector<OperandAlias>>(aliases.begin(), aliases.end())->data();
      break;
    }
  }
  return made;
}

}  // namespace

Instruction* copy_instruction(Module& to, Computation* into, const Instruction& from,
                              std::span<Instruction* const> operands, Copied& copied,
                              bool share_literals, bool is_whole) {
  std::vector<Attribute> attributes;
  for (const Attribute& one : from.attributes) {
    if (one.key == AttributeKey::ControlPredecessors && !is_whole) continue;
    attributes.push_back(copy_attribute(to, one, copied, into->instructions, share_literals));
  }
  Instruction* made = to.add_instruction(into, from.opcode, from.name, to.intern(*from.shape),
                                         operands, attributes);
  if (from.opcode == Opcode::Constant) {
    made->literal = share_literals ? from.literal : to.arena().make<Literal>(from.literal->clone());
  } else if (from.opcode == Opcode::Parameter) {
    made->parameter_number = from.parameter_number;
  }
  return made;
}

Computation* copy_computation(Module& to, const Computation& from, Copied& copied,
                              bool share_literals) {
  auto found = copied.find(&from);
  if (found != copied.end()) return found->second;
  // Callees are copied first, because they must precede their callers in the module.
  for (const Instruction* i : from.instructions) {
    for_each_called(*i, [&](const Computation& called) {
      copy_computation(to, called, copied, share_literals);
    });
  }
  Computation* made = to.add_computation(to.free_computation_name(from.name));
  copied.emplace(&from, made);
  made->attributes = to.arena().copy(from.attributes);
  made->parameters.resize(from.parameters.size());
  for (const Instruction* i : from.instructions) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands) {
      operands.push_back(made->instructions[static_cast<size_t>(operand->index)]);
    }
    Instruction* copy = copy_instruction(to, made, *i, operands, copied, share_literals, true);
    if (i->opcode == Opcode::Parameter) {
      made->parameters[static_cast<size_t>(i->parameter_number)] = copy;
    }
  }
  made->root = made->instructions[static_cast<size_t>(from.root->index)];
  return made;
}

}  // namespace lamella::hlo
