// Compares two modules by pairing their instructions.
#include "lamella/graph/view/diff.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/hlo/infer.h"
#include "lamella/graph/hlo/names.h"

namespace lamella::hlo {
namespace {

// Assigns unique numbers to texts, so that expressions compare quickly and without collisions.
class Numbers {
 public:
  int64_t of(const std::string& text) {
    return numbers_.emplace(text, static_cast<int64_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, int64_t> numbers_;
};

// Numbers for the expressions and computations of a module, independent of names. Equal numbers
// mean equal expressions; both modules share `numbers`.
class Meaning {
 public:
  Meaning(const Module& module, Numbers& numbers) : numbers_(numbers) {
    for (const Computation* computation : module.computations) add(*computation);
  }
  // The whole expression, including operands.
  int64_t of(const Instruction& i) const { return expressions_.at(&i); }
  // The instruction alone, without its operands.
  int64_t alone(const Instruction& i) const { return alone_.at(&i); }
  int64_t of(const Computation& computation) const { return computations_.at(&computation); }

 private:
  void add(const Computation& computation) {
    std::string whole;
    for (const Instruction* i : computation.instructions) {
      std::string text = own_text(*i);
      alone_[i] = numbers_.of(text);
      text += " of";
      for (const Instruction* operand : i->operands) text += str(" ", expressions_.at(operand));
      if (const Attribute* before = i->find(AttributeKey::ControlPredecessors)) {
        for (const Instruction* one : before->instructions()) {
          text += str(" after ", expressions_.at(one));
        }
      }
      expressions_[i] = numbers_.of(text);
      // Instructions with side effects are part of the meaning, in order, even if unused.
      if (has_side_effect(*i)) whole += str(" effect ", expressions_.at(i));
    }
    for (const Instruction* parameter : computation.parameters) {
      whole += str(" parameter ", expressions_.at(parameter));
    }
    computations_[&computation] =
        numbers_.of(str("computation ", expressions_.at(computation.root), whole));
  }
  std::string own_text(const Instruction& i) const {
    std::string text = str(opcode_name(i.opcode), " ", i.shape->to_string());
    if (i.opcode == Opcode::Constant) text += str(" ", i.literal->to_string());
    if (i.opcode == Opcode::Parameter) text += str(" ", i.parameter_number);
    for (const Attribute& a : i.attributes) {
      switch (attribute_kind(a.key)) {
        case AttributeKind::Computation:
          text += str(", ", attribute_name(a.key), "=", computations_.at(a.computation));
          break;
        case AttributeKind::Computations:
          text += str(", ", attribute_name(a.key), "=");
          for (const Computation* one : a.computations()) text += str(" ", computations_.at(one));
          break;
        case AttributeKind::Instructions:
          break;
        default:
          if (a.key != AttributeKey::Metadata) {
            text += str(", ", attribute_name(a.key), "=", to_string(a));
          }
      }
    }
    return text;
  }

  Numbers& numbers_;
  std::unordered_map<const Instruction*, int64_t> expressions_, alone_;
  std::unordered_map<const Computation*, int64_t> computations_;
};

using Pairs = std::unordered_map<const Instruction*, const Instruction*>;

class Comparison {
 public:
  Comparison(const Module& before, const Module& after)
      : before_(before),
        after_(after),
        meaning_before_(before, numbers_),
        meaning_after_(after, numbers_) {}

  Difference run() {
    pair(before_.entry, after_.entry);
    run_waiting();
    // Computations that nothing calls are paired by their names, callers first.
    Names<const Computation> named;
    for (const Computation* one : after_.computations) named.insert(one->name, one);
    for (auto one = before_.computations.rbegin(); one != before_.computations.rend(); ++one) {
      const Computation* other = named.find((*one)->name);
      if (other != nullptr) pair(*one, other);
      run_waiting();
    }
    rest();
    if (header()) return std::move(made_);
    if (made_.same()) {
      made_.text = to_string(before_) == to_string(after_) ? "equal" : "equal up to renaming";
    } else {
      made_.text += str(made_.removed, " removed, ", made_.added, " added, ", made_.changed,
                        " changed, ", made_.equal, " equal");
    }
    return std::move(made_);
  }

 private:
  void run_waiting() {
    while (!waiting_.empty()) {
      auto [one, other] = waiting_.front();
      waiting_.pop_front();
      computations(*one, *other);
    }
  }
  void pair(const Computation* one, const Computation* other) {
    if (seen_before_.count(one) != 0 || seen_after_.count(other) != 0) return;
    seen_before_.insert(one);
    seen_after_.insert(other);
    partner_[one] = other;
    waiting_.emplace_back(one, other);
  }

  // Compares the headers of the modules. Returns true if only the headers differ.
  bool header() {
    std::string text;
    auto aliases = [](const Module& m) {
      std::string list;
      for (const InputOutputAlias& a : m.input_output_aliases) {
        list += str(list.empty() ? "" : ", ", braced(a.output), ": (", a.parameter, ", ",
                    braced(a.parameter_index), a.must ? ", must-alias)" : ")");
      }
      return list.empty() ? std::string("none") : list;
    };
    auto layout = [](const Module& m) {
      std::string list = "(";
      for (const Shape* one : m.entry_parameter_layouts) {
        list += str(list.size() == 1 ? "" : ", ", one->to_string());
      }
      if (m.entry_result_layout == nullptr) return std::string("none");
      return str(list, ")->", m.entry_result_layout->to_string());
    };
    for (const auto& [name, one, other] :
         {std::tuple("input_output_alias", aliases(before_), aliases(after_)),
          std::tuple("entry_computation_layout", layout(before_), layout(after_))}) {
      if (one != other) text += str("module: ", name, " ", one, " -> ", other, "\n");
    }
    if (text.empty()) return false;
    bool only = made_.same();
    made_.changed += 1;
    made_.text = text + made_.text;
    if (only) {
      made_.text += str("0 removed, 0 added, 1 changed, ", made_.equal, " equal");
    }
    return only;
  }

  void computations(const Computation& one, const Computation& other) {
    if (meaning_before_.of(one) == meaning_after_.of(other) &&
        one.instructions.size() == other.instructions.size() && pair_equal(one, other)) {
      return;
    }
    Pairs forward, backward;
    auto join = [&](const Instruction* a, const Instruction* b) {
      forward[a] = b;
      backward[b] = a;
    };
    // Pairs equal expressions, preferring those of the same name.
    std::map<int64_t, std::deque<const Instruction*>> expressions;
    std::map<std::string_view, const Instruction*> names;
    for (const Instruction* b : other.instructions) names[b->name] = b;
    for (const Instruction* a : one.instructions) {
      auto found = names.find(a->name);
      if (found != names.end() && meaning_after_.of(*found->second) == meaning_before_.of(*a)) {
        join(a, found->second);
      }
    }
    for (const Instruction* b : other.instructions) {
      if (backward.count(b) == 0) expressions[meaning_after_.of(*b)].push_back(b);
    }
    for (const Instruction* a : one.instructions) {
      if (forward.count(a) != 0) continue;
      auto found = expressions.find(meaning_before_.of(*a));
      if (found == expressions.end() || found->second.empty()) continue;
      join(a, found->second.front());
      found->second.pop_front();
    }
    // Pairs equal instructions whose operands are paired.
    std::map<std::vector<int64_t>, std::deque<const Instruction*>> by_operands;
    std::unordered_map<const Instruction*, int64_t> number;
    for (const Instruction* b : other.instructions) number[b] = b->index;
    auto operands_of = [&](const Instruction& b, int64_t first) {
      std::vector<int64_t> key{first};
      for (const Instruction* operand : b.operands) key.push_back(number.at(operand));
      return key;
    };
    for (const Instruction* b : other.instructions) {
      if (backward.count(b) == 0) {
        by_operands[operands_of(*b, meaning_after_.alone(*b))].push_back(b);
      }
    }
    auto paired_operands = [&](const Instruction& a, int64_t first, std::vector<int64_t>* key) {
      *key = {first};
      for (const Instruction* operand : a.operands) {
        auto found = forward.find(operand);
        if (found == forward.end()) return false;
        key->push_back(number.at(found->second));
      }
      return true;
    };
    for (const Instruction* a : one.instructions) {
      std::vector<int64_t> key;
      if (forward.count(a) == 0 && paired_operands(*a, meaning_before_.alone(*a), &key)) {
        auto found = by_operands.find(key);
        while (found != by_operands.end() && !found->second.empty()) {
          const Instruction* b = found->second.front();
          found->second.pop_front();
          if (backward.count(b) != 0) continue;
          join(a, b);
          break;
        }
      }
      if (forward.count(a) != 0) continue;
      // Pairs instructions of the same name and opcode.
      auto named = names.find(a->name);
      if (named != names.end() && backward.count(named->second) == 0 &&
          named->second->opcode == a->opcode) {
        join(a, named->second);
      }
    }
    // Pairs roots of equal opcodes, and then operands of equal opcodes at the same position of
    // paired instructions.
    if (forward.count(one.root) == 0 && backward.count(other.root) == 0 &&
        one.root->opcode == other.root->opcode) {
      join(one.root, other.root);
    }
    for (size_t n = one.instructions.size(); n-- > 0;) {
      const Instruction* a = one.instructions[n];
      auto found = forward.find(a);
      if (found == forward.end()) continue;
      const Instruction* b = found->second;
      for (size_t k = 0; k < a->operands.size() && k < b->operands.size(); ++k) {
        const Instruction *x = a->operands[k], *y = b->operands[k];
        if (forward.count(x) == 0 && backward.count(y) == 0 && x->opcode == y->opcode) join(x, y);
      }
    }
    report(one, other, forward, backward);
  }

  // Pairs the instructions of two equal computations by their expressions.
  bool pair_equal(const Computation& one, const Computation& other) {
    std::map<int64_t, std::deque<const Instruction*>> expressions;
    for (const Instruction* b : other.instructions) {
      expressions[meaning_after_.of(*b)].push_back(b);
    }
    std::vector<std::pair<const Instruction*, const Instruction*>> pairs;
    for (const Instruction* a : one.instructions) {
      auto found = expressions.find(meaning_before_.of(*a));
      if (found == expressions.end() || found->second.empty()) return false;
      pairs.emplace_back(a, found->second.front());
      found->second.pop_front();
    }
    made_.equal += static_cast<int64_t>(pairs.size());
    for (auto [a, b] : pairs) called(*a, *b);
    return true;
  }
  void called(const Instruction& a, const Instruction& b) {
    std::vector<const Computation*> first, second;
    for_each_called(a, [&](const Computation& c) { first.push_back(&c); });
    for_each_called(b, [&](const Computation& c) { second.push_back(&c); });
    for (size_t n = 0; n < std::min(first.size(), second.size()); ++n) pair(first[n], second[n]);
  }

  void report(const Computation& one, const Computation& other, const Pairs& forward,
              const Pairs& backward) {
    std::string text;
    for (const Instruction* a : one.instructions) {
      auto found = forward.find(a);
      if (found == forward.end()) {
        ++made_.removed;
        text += "  - " + shown(*a) + "\n";
        continue;
      }
      const Instruction* b = found->second;
      std::string change = changes(*a, *b, forward);
      called(*a, *b);
      if (change.empty()) {
        ++made_.equal;
        continue;
      }
      ++made_.changed;
      text += str("  ~ ", renamed(a->name, b->name), ": ", change, "\n");
    }
    for (const Instruction* b : other.instructions) {
      if (backward.count(b) != 0) continue;
      ++made_.added;
      text += "  + " + shown(*b) + "\n";
    }
    auto root = forward.find(one.root);
    if (root == forward.end() || root->second != other.root) {
      text += str("  root: ", one.root->name, " -> ", other.root->name, "\n");
      if (root != forward.end()) ++made_.changed;
    }
    if (!text.empty()) made_.text += str(renamed(one.name, other.name), ":\n", text);
  }

  bool alike(const Computation* one, const Computation* other) const {
    auto found = partner_.find(one);
    return (found != partner_.end() && found->second == other) ||
           meaning_before_.of(*one) == meaning_after_.of(*other);
  }

  // Describes the differences between two paired instructions; "" if only names differ.
  std::string changes(const Instruction& a, const Instruction& b, const Pairs& forward) const {
    std::string text;
    auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
    if (a.opcode != b.opcode) {
      add(str("opcode ", opcode_name(a.opcode), " -> ", opcode_name(b.opcode)));
    }
    if (!(*a.shape == *b.shape)) {
      add(str("shape ", a.shape->to_string(), " -> ", b.shape->to_string()));
    }
    if (a.opcode == Opcode::Constant && b.opcode == Opcode::Constant) {
      std::string one = a.literal->to_string(), other = b.literal->to_string();
      if (one != other) add(str("value ", cut(one), " -> ", cut(other)));
    }
    if (a.opcode == Opcode::Parameter && b.opcode == Opcode::Parameter &&
        a.parameter_number != b.parameter_number) {
      add(str("parameter ", a.parameter_number, " -> ", b.parameter_number));
    }
    std::set<AttributeKey> keys;
    for (const Attribute& one : a.attributes) keys.insert(one.key);
    for (const Attribute& one : b.attributes) keys.insert(one.key);
    for (AttributeKey key : keys) {
      AttributeKind kind = attribute_kind(key);
      const Attribute *one = a.find(key), *other = b.find(key);
      if (key == AttributeKey::Metadata) continue;
      // Names of called computations are ignored: if the computations are equal, or are compared
      // with each other anyway, the instruction is unchanged.
      if (one != nullptr && other != nullptr && one->size == other->size) {
        if (kind == AttributeKind::Instructions) continue;
        if (kind == AttributeKind::Computation && alike(one->computation, other->computation)) {
          continue;
        }
        if (kind == AttributeKind::Computations &&
            std::equal(one->computations().begin(), one->computations().end(),
                       other->computations().begin(),
                       [&](auto* x, auto* y) { return alike(x, y); })) {
          continue;
        }
      }
      std::string from = one != nullptr ? to_string(*one) : "absent";
      std::string to = other != nullptr ? to_string(*other) : "absent";
      if (from != to) add(str(attribute_name(key), " ", cut(from), " -> ", cut(to)));
    }
    if (a.operands.size() != b.operands.size()) {
      add(str(a.operands.size(), " -> ", b.operands.size(), " operands"));
    }
    for (size_t n = 0; n < std::min(a.operands.size(), b.operands.size()); ++n) {
      auto found = forward.find(a.operands[n]);
      if (found != forward.end() && found->second == b.operands[n]) continue;
      add(str("operand ", n, ": ", a.operands[n]->name, " -> ", b.operands[n]->name));
    }
    return text;
  }

  // Reports computations that no paired instructions call.
  void rest() {
    for (const Computation* one : before_.computations) {
      if (seen_before_.count(one) != 0) continue;
      made_.removed += static_cast<int64_t>(one->instructions.size());
      made_.text += str("- computation ", one->name, " of ", one->instructions.size(),
                        one->instructions.size() == 1 ? " instruction\n" : " instructions\n");
    }
    for (const Computation* one : after_.computations) {
      if (seen_after_.count(one) != 0) continue;
      made_.added += static_cast<int64_t>(one->instructions.size());
      made_.text += str("+ computation ", one->name, " of ", one->instructions.size(),
                        one->instructions.size() == 1 ? " instruction\n" : " instructions\n");
    }
  }

  static std::string cut(const std::string& text) {
    return text.size() <= 120 ? text : text.substr(0, 117) + "...";
  }
  static std::string renamed(std::string_view one, std::string_view other) {
    return one == other ? std::string(one) : str(one, " -> ", other);
  }
  static std::string shown(const Instruction& i) {
    PrintOptions options;
    options.metadata = false;
    std::string text = to_string(i, options);
    return text.size() <= 400 ? text : text.substr(0, 397) + "...";
  }

  const Module& before_;
  const Module& after_;
  Numbers numbers_;
  Meaning meaning_before_, meaning_after_;
  std::set<const Computation*> seen_before_, seen_after_;
  std::unordered_map<const Computation*, const Computation*> partner_;
  std::deque<std::pair<const Computation*, const Computation*>> waiting_;
  Difference made_;
};

}  // namespace

Difference compare(const Module& before, const Module& after) {
  return Comparison(before, after).run();
}
std::string difference(const Module& before, const Module& after) {
  return compare(before, after).text + "\n";
}

}  // namespace lamella::hlo
