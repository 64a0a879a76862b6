// Rewriter: what passes over the instructions of a computation have in common.
#pragma once
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Goes once over a computation and puts other instructions into the place of some. What others
// wait for by a control dependency, and what waits so, stays as it is.
class Rewriter {
 public:
  Rewriter(Module& module, Computation& computation);

  // Calls rule(i) for each instruction, whose operands are rewritten already, operands first. The
  // rule gives what stands for i from now on: an instruction before it, or one made by add(); i
  // itself or null leave it. Returns how many it replaced.
  template <class F>
  int64_t rewrite(F&& rule) {
    std::vector<Instruction*> before = std::move(computation_.instructions);
    computation_.instructions.clear();
    int64_t replaced = 0;
    for (Instruction* i : before) {
      take_operands(*i);
      current_ = i;
      Instruction* by = is_fixed(*i) ? nullptr : rule(i);
      if (by != nullptr && by != i && may_stand_for(*by, *i)) {
        replaced_[i] = by;
        ++replaced;
        continue;
      }
      i->index = static_cast<int64_t>(computation_.instructions.size());
      computation_.instructions.push_back(i);
    }
    auto root = replaced_.find(computation_.root);
    if (root != replaced_.end()) computation_.root = root->second;
    return replaced;
  }

  // An instruction in front of the one that the rule is asked for.
  Instruction* add(Opcode opcode, Shape shape, const std::vector<Instruction*>& operands,
                   const std::vector<Attribute>& attributes = {});
  // The current instruction with other operands.
  Instruction* with_operands(const Instruction* i, const std::vector<Instruction*>& operands);
  Instruction* constant(Literal literal);
  // A number, repeated to the shape.
  Instruction* full(const Shape& shape, double value);
  Instruction* reshape(Instruction* x, const std::vector<int64_t>& sizes);
  Instruction* transpose(Instruction* x, const std::vector<int64_t>& order);
  Instruction* broadcast(Instruction* x, const Shape& shape, const std::vector<int64_t>& dims);
  // Attributes whose values live with the module.
  Attribute integers(AttributeKey key, const std::vector<int64_t>& numbers);
  static Attribute integer(AttributeKey key, int64_t number);
  Attribute text(AttributeKey key, std::string_view text);
  Attribute window(const std::vector<WindowDimension>& dimensions);
  Attribute dim_labels(ConvolutionDimensions dimensions);
  // How many operands each instruction of the computation is, one more for the root; as they were
  // before the pass.
  int uses(const Instruction* i) const {
    auto found = uses_.find(i);
    return found == uses_.end() ? 0 : found->second;
  }
  Module& module() { return module_; }

 private:
  void take_operands(Instruction& i);
  bool is_fixed(const Instruction& i) const { return fixed_.count(&i) != 0; }
  bool may_stand_for(const Instruction& by, const Instruction& i) const;

  Module& module_;
  Computation& computation_;
  const Instruction* current_ = nullptr;
  std::unordered_map<const Instruction*, Instruction*> replaced_;
  std::unordered_map<const Instruction*, int> uses_;
  std::unordered_set<const Instruction*> fixed_;
  std::unordered_set<std::string_view> names_;
  bool reads_layouts_ = false;
};

// What several passes ask.

// The one element that all elements of an array are, if that is a constant; null otherwise.
const Literal* repeated_constant(const Instruction* i);
// The sizes that are not 1.
std::vector<int64_t> without_ones(const Shape& shape);
// Whether a reshape adds and removes dimensions of size 1 and does nothing else.
bool moves_ones(const Instruction& reshape);

}  // namespace lamella::hlo
