// Rewriter: the shared part of passes over the instructions of a computation.
#pragma once
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Walks over a computation once and replaces instructions. Both ends of a control dependency stay
// unchanged.
class Rewriter {
 public:
  Rewriter(Module& module, Computation& computation);

  // Calls rule(i) for each instruction, operands first; the operands of i are already rewritten.
  // The rule returns the replacement of i: an earlier instruction, or one made by add(); i itself
  // or null keep it. Returns the number of replacements.
  template <class F>
  int64_t rewrite(F&& rule) {
    before_ = std::move(computation_.instructions);
    computation_.instructions.clear();
    int64_t replaced = 0;
    for (Instruction* i : before_) {
      take_operands(*i);
      current_ = i;
      Instruction* by = is_fixed(*i) ? nullptr : rule(i);
      if (by != nullptr && by != i && may_stand_for(*by, *i)) {
        replaced_[i] = by;
        ++replaced;
        continue;
      }
      came_from_.resize(computation_.instructions.size(), kMade);
      came_from_.push_back(i->index);
      i->index = static_cast<int64_t>(computation_.instructions.size());
      computation_.instructions.push_back(i);
    }
    auto root = replaced_.find(computation_.root);
    if (root != replaced_.end()) computation_.root = root->second;
    return replaced;
  }

  // A new instruction before the one that the rule is called for.
  Instruction* add(Opcode opcode, Shape shape, const std::vector<Instruction*>& operands,
                   const std::vector<Attribute>& attributes = {});
  // An instruction like `i` with other operands.
  Instruction* with_operands(const Instruction* i, const std::vector<Instruction*>& operands);
  Instruction* constant(Literal literal);
  // An array of this shape that repeats a number.
  Instruction* full(const Shape& shape, double value);
  Instruction* reshape(Instruction* x, const std::vector<int64_t>& sizes);
  Instruction* transpose(Instruction* x, const std::vector<int64_t>& order);
  Instruction* broadcast(Instruction* x, const Shape& shape, const std::vector<int64_t>& dims);
  // Attributes whose values are owned by the module.
  Attribute integers(AttributeKey key, const std::vector<int64_t>& numbers);
  static Attribute integer(AttributeKey key, int64_t number);
  Attribute text(AttributeKey key, std::string_view text);
  Attribute window(const std::vector<WindowDimension>& dimensions);
  Attribute dim_labels(ConvolutionDimensions dimensions);
  // The number of uses of an instruction as an operand, plus one for the root, before the pass.
  int uses(const Instruction* i) const {
    auto at = static_cast<size_t>(i->index);
    if (!before_.empty() && at < computation_.instructions.size() &&
        computation_.instructions[at] == i) {
      int64_t from = at < came_from_.size() ? came_from_[at] : kMade;
      return from == kMade ? 0 : uses_[static_cast<size_t>(from)];
    }
    return uses_[at];
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
  // Programs have many instructions, and each pass makes a Rewriter: what is known of all of them
  // is kept by their indices, and their names are collected when the first new one is needed.
  static constexpr int64_t kMade = -1;
  std::vector<Instruction*> before_;  // the instructions that rewrite() was given
  std::vector<int> uses_;             // by the index before
  std::vector<int64_t> came_from_;    // the index before, or kMade, by the index now
  std::unordered_set<const Instruction*> fixed_;
  std::unordered_set<std::string_view> names_;
  bool reads_layouts_ = false;
};

// Queries that several passes share.

// The constant that all elements of an array repeat; null if there is none.
const Literal* repeated_constant(const Instruction* i);
// The sizes that are not 1.
std::vector<int64_t> without_ones(const Shape& shape);
// True if a reshape only adds and removes dimensions of size 1.
bool moves_ones(const Instruction& reshape);

}  // namespace lamella::hlo
