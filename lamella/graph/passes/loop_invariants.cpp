// Moves loop-invariant instructions out of while bodies.
#include "lamella/graph/passes/loop_invariants.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

// True if an instruction may run even if the body does not: it has no side effects and raises no
// errors.
bool may_move(const Instruction& i) {
  if (!i.shape->is_array() || i.has(AttributeKey::ControlPredecessors)) return false;
  if (opcode_effects(i.opcode) != Effects::Pure) return false;
  switch (opcode_family(i.opcode)) {
    case Family::Elementwise:
      return true;
    case Family::Movement:
      return !has_side_effect(i);
    case Family::Contraction:
      return i.opcode == Opcode::Dot || i.opcode == Opcode::Convolution;
    case Family::Reduction:
      return i.opcode == Opcode::Reduce && !has_side_effect(i);
    default:
      return i.opcode == Opcode::Iota || i.opcode == Opcode::Constant;
  }
}
// True if an instruction is worth an element of the state. Movements and constants are part of
// their users, and functions of scalars are faster than a load.
bool is_worth_it(const Instruction& i) {
  Family family = opcode_family(i.opcode);
  return family == Family::Contraction || family == Family::Reduction ||
         (family == Family::Elementwise && i.shape->elements() > 1);
}

// For each element of the state: whether the body passes it on unchanged.
std::vector<bool> passed_on(const Computation& body) {
  const Instruction* state = body.parameters[0];
  std::vector<bool> same;
  for (size_t n = 0; n < body.root->operands.size(); ++n) {
    const Instruction* given = body.root->operands[n];
    same.push_back(given->opcode == Opcode::GetTupleElement && given->operands[0] == state &&
                   given->integer(AttributeKey::Index) == static_cast<int64_t>(n));
  }
  return same;
}

class Mover {
 public:
  Mover(Module& module, Rewriter& outside, Instruction* loop)
      : module_(module),
        outside_(outside),
        loop_(loop),
        body_(*loop->computation(AttributeKey::Body)),
        condition_(*loop->computation(AttributeKey::Condition)) {}

  // A tuple of the original results of the loop with extended state; null if nothing moves.
  Instruction* moved() {
    bool fits = loop_->shape->is_tuple() && body_.root->opcode == Opcode::Tuple &&
                body_.parameters[0]->shape->is_tuple() && &body_ != &condition_ &&
                std::ranges::all_of(body_.instructions, [&](const Instruction* i) {
                  return i->opcode != Opcode::GetTupleElement ||
                         i->operands[0] != body_.parameters[0] || i->shape->is_array() ||
                         i->shape->is_tuple();
                });
    if (!fits || !only_elements_are_read()) return nullptr;
    find();
    if (kept_.empty()) return nullptr;
    std::vector<Instruction*> state;
    std::vector<Shape> shapes = loop_->shape->tuple_shapes();
    size_t count = shapes.size();
    for (size_t n = 0; n < count; ++n) state.push_back(element(n));
    for (Instruction* i : kept_) {
      state.push_back(outside_of(i));
      shapes.push_back(*i->shape);
    }
    Shape shape = Shape::tuple(shapes);
    Instruction* given = outside_.add(Opcode::Tuple, shape, state);
    widen_body(shape, count);
    const Shape* kept = module_.intern(shape);
    condition_.parameters[0]->shape = kept;
    std::vector<Attribute> attributes(loop_->attributes.begin(), loop_->attributes.end());
    Instruction* made = outside_.add(Opcode::While, shape, {given}, attributes);
    std::vector<Instruction*> results;
    for (size_t n = 0; n < count; ++n) {
      results.push_back(
          outside_.add(Opcode::GetTupleElement, shapes[n], {made},
                       {Rewriter::integer(AttributeKey::Index, static_cast<int64_t>(n))}));
    }
    return outside_.add(Opcode::Tuple, *loop_->shape, results);
  }

 private:
  // True if body and condition read the state only by get-tuple-element.
  bool only_elements_are_read() const {
    for (const Computation* one : {&body_, &condition_}) {
      if (one->parameters.size() != 1 || one->root == one->parameters[0]) return false;
      for (const Instruction* i : one->instructions) {
        for (const Instruction* operand : i->operands) {
          if (operand == one->parameters[0] && i->opcode != Opcode::GetTupleElement) return false;
        }
      }
    }
    return true;
  }
  void find() {
    std::vector<bool> same = passed_on(body_);
    std::unordered_set<const Instruction*> fixed;
    for (const Instruction* i : body_.instructions) {
      if (i->opcode == Opcode::GetTupleElement && i->operands[0] == body_.parameters[0] &&
          same[static_cast<size_t>(i->integer(AttributeKey::Index))]) {
        fixed.insert(i);
      } else if (may_move(*i) && std::ranges::all_of(i->operands, [&](const Instruction* operand) {
                   return fixed.count(operand) != 0;
                 })) {
        fixed.insert(i);
        moving_.insert(i);
      }
    }
    // Only values that staying instructions read must be in the state.
    for (Instruction* i : body_.instructions) {
      if (moving_.count(i) == 0 || !is_worth_it(*i)) continue;
      bool is_read = std::ranges::any_of(body_.instructions, [&](const Instruction* user) {
        bool moves = moving_.count(user) != 0 && is_worth_it(*user);
        return !moves && std::ranges::find(user->operands, i) != user->operands.end();
      });
      if (is_read) kept_.push_back(i);
    }
  }
  Instruction* element(size_t n) {
    Instruction* given = loop_->operands[0];
    if (given->opcode == Opcode::Tuple) return given->operands[n];
    return outside_.add(Opcode::GetTupleElement, loop_->shape->tuple_shapes()[n], {given},
                        {Rewriter::integer(AttributeKey::Index, static_cast<int64_t>(n))});
  }
  // A copy, before the loop, of an instruction of the body.
  Instruction* outside_of(const Instruction* i) {
    Instruction*& made = copies_[i];
    if (made != nullptr) return made;
    if (i->opcode == Opcode::GetTupleElement) {
      return made = element(static_cast<size_t>(i->integer(AttributeKey::Index)));
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands) operands.push_back(outside_of(operand));
    Instruction* copy =
        outside_.add(i->opcode, *i->shape, operands,
                     std::vector<Attribute>(i->attributes.begin(), i->attributes.end()));
    if (i->opcode == Opcode::Constant) copy->literal = i->literal;
    return copies_[i] = copy;
  }
  void widen_body(const Shape& shape, size_t count) {
    Rewriter inside(module_, body_);
    const Shape* kept = module_.intern(shape);
    Instruction* state = body_.parameters[0];
    state->shape = kept;
    Instruction* root = body_.root;
    std::unordered_map<const Instruction*, Instruction*> found;
    inside.rewrite([&](Instruction* i) -> Instruction* {
      for (size_t n = 0; n < kept_.size(); ++n) {
        if (kept_[n] != i) continue;
        return found[i] = inside.add(
                   Opcode::GetTupleElement, *i->shape, {state},
                   {Rewriter::integer(AttributeKey::Index, static_cast<int64_t>(count + n))});
      }
      if (i != root) return nullptr;
      std::vector<Instruction*> operands(root->operands.begin(), root->operands.end());
      for (const Instruction* one : kept_) operands.push_back(found.at(one));
      root->operands = module_.arena().copy(std::span<Instruction* const>(operands));
      root->shape = kept;
      return nullptr;
    });
  }

  Module& module_;
  Rewriter& outside_;
  Instruction* loop_;
  Computation& body_;
  Computation& condition_;
  std::unordered_set<const Instruction*> moving_;
  std::vector<Instruction*> kept_;
  std::unordered_map<const Instruction*, Instruction*> copies_;
};

}  // namespace

int64_t move_loop_invariants(Module& module) {
  // A body that two loops share would need the state of both, so it is left alone.
  std::unordered_map<const Computation*, int> callers;
  for (const Computation* computation : module.computations) {
    for (const Instruction* i : computation->instructions) {
      for_each_called(*i, [&](const Computation& called) { ++callers[&called]; });
    }
  }
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      if (i->opcode != Opcode::While || callers[i->computation(AttributeKey::Body)] != 1 ||
          callers[i->computation(AttributeKey::Condition)] != 1) {
        return nullptr;
      }
      return Mover(module, rewriter, i).moved();
    });
  }
  return changed;
}

}  // namespace lamella::hlo
