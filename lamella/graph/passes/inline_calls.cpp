// Replaces calls of computations by the instructions of the callee.
#include "lamella/graph/passes/inline_calls.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/core/error.h"

namespace lamella::hlo {
namespace {

const Computation* called_by(const Instruction& i) {
  if (i.opcode != Opcode::Call && i.opcode != Opcode::Fusion) return nullptr;
  return i.computation(i.has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls);
}

// Rebuilds one computation, keeping instruction names unique.
class Inliner {
 public:
  Inliner(Module& module, Computation& computation) : module_(module), to_(computation) {}

  void keep(Instruction* i) {
    for (Instruction*& operand : i->operands) operand = now(operand);
    if (Instruction* element = element_of(i->opcode, i->operands, i->attributes)) {
      replaced_[i] = element;
      return;
    }
    i->index = static_cast<int64_t>(to_.instructions.size());
    names_.insert(i->name);
    to_.instructions.push_back(i);
  }
  void replace(Instruction* call, const Computation& by) {
    std::unordered_map<const Instruction*, Instruction*> copies;
    for (const Instruction* i : by.instructions) {
      if (i->opcode == Opcode::Parameter) {
        copies[i] = now(call->operands[static_cast<size_t>(i->parameter_number)]);
        continue;
      }
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i->operands) operands.push_back(copies.at(operand));
      if (Instruction* element = element_of(i->opcode, operands, i->attributes)) {
        copies[i] = element;
        continue;
      }
      std::string name(i->name);
      for (int n = 1; names_.count(name) != 0; ++n) name = str(i->name, ".", n);
      Instruction* made =
          module_.add_instruction(&to_, i->opcode, name, i->shape, operands, i->attributes);
      if (i->opcode == Opcode::Constant) made->literal = i->literal;
      names_.insert(made->name);
      copies[i] = made;
    }
    replaced_[call] = copies.at(by.root);
  }
  Instruction* now(Instruction* i) const {
    auto found = replaced_.find(i);
    return found == replaced_.end() ? i : found->second;
  }

 private:
  // The element of a tuple that is made in this computation, which inlined calls often leave; null
  // for anything else.
  static Instruction* element_of(Opcode opcode, std::span<Instruction* const> operands,
                                 std::span<const Attribute> attributes) {
    if (opcode != Opcode::GetTupleElement || operands[0]->opcode != Opcode::Tuple) return nullptr;
    for (const Attribute& one : attributes) {
      if (one.key != AttributeKey::Index) continue;
      return operands[0]->operands[static_cast<size_t>(one.integer)];
    }
    return nullptr;
  }

  Module& module_;
  Computation& to_;
  std::unordered_map<const Instruction*, Instruction*> replaced_;
  std::unordered_set<std::string_view> names_;
};

}  // namespace

int64_t inline_calls(Module& module, int64_t most,
                     const std::function<bool(const Computation&)>& wanted) {
  int64_t count = module.instruction_count();
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    std::vector<Instruction*> before = std::move(computation->instructions);
    computation->instructions.clear();
    Inliner inliner(module, *computation);
    for (Instruction* i : before) {
      const Computation* called = called_by(*i);
      bool replaces = called != nullptr && called != computation && wanted(*called) &&
                      !i->has(AttributeKey::ControlPredecessors) &&
                      count + static_cast<int64_t>(called->instructions.size()) <= most;
      if (!replaces) {
        inliner.keep(i);
        continue;
      }
      inliner.replace(i, *called);
      count += static_cast<int64_t>(called->instructions.size());
      ++changed;
    }
    computation->root = inliner.now(computation->root);
  }
  return changed;
}

}  // namespace lamella::hlo
