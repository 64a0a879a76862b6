// Finds equal instructions by hashing.
#include "lamella/graph/passes/common_subexpressions.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "lamella/graph/custom_call/function_call.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

constexpr size_t kMaxComparedBytes = 4096;  // of constants

bool may_join(const Instruction& i) {
  if (function_call(i) != nullptr) return true;
  if (opcode_effects(i.opcode) != Effects::Pure) return false;
  switch (opcode_family(i.opcode)) {
    case Family::Elementwise:
      return true;
    case Family::Constant:
      return i.opcode == Opcode::Iota ||
             (i.opcode == Opcode::Constant && i.literal->bytes() <= kMaxComparedBytes &&
              i.shape->is_array());
    case Family::Movement:
    case Family::Reduction:
    case Family::Contraction:
    case Family::Tuple:
      return !has_side_effect(i);
    default:
      return false;
  }
}

bool is_same(const Attribute& a, const Attribute& b) {
  if (a.key != b.key || a.size != b.size) return false;
  switch (attribute_kind(a.key)) {
    case AttributeKind::Integer:
    case AttributeKind::Boolean:
    case AttributeKind::Computation:
    case AttributeKind::ShapeOf:
      return a.integer == b.integer;
    case AttributeKind::Integers:
      return std::ranges::equal(a.integers(), b.integers());
    case AttributeKind::Word:
    case AttributeKind::String:
    case AttributeKind::Text:
      return a.text() == b.text();
    default:
      return to_string(a) == to_string(b);
  }
}
// Metadata does not affect what an instruction means.
bool counts(const Attribute& a) { return a.key != AttributeKey::Metadata; }
bool is_same(const Instruction& a, const Instruction& b) {
  if (a.opcode != b.opcode || a.shape != b.shape || !std::ranges::equal(a.operands, b.operands)) {
    return false;
  }
  if (a.opcode == Opcode::Constant) return *a.literal == *b.literal;
  std::vector<const Attribute*> ours, theirs;
  for (const Attribute& one : a.attributes) {
    if (counts(one)) ours.push_back(&one);
  }
  for (const Attribute& one : b.attributes) {
    if (counts(one)) theirs.push_back(&one);
  }
  return std::ranges::equal(ours, theirs, [](auto* x, auto* y) { return is_same(*x, *y); });
}
size_t hash_of(const Instruction& i) {
  size_t hash = static_cast<size_t>(i.opcode) * 31 + reinterpret_cast<size_t>(i.shape);
  for (const Instruction* operand : i.operands) {
    hash = hash * 1099511628211u + reinterpret_cast<size_t>(operand);
  }
  if (i.opcode == Opcode::Constant && i.literal->bytes() != 0) {
    const auto* bytes = static_cast<const char*>(i.literal->data());
    hash ^= std::hash<std::string_view>()({bytes, i.literal->bytes()});
  }
  return hash;
}

}  // namespace

int64_t join_common_subexpressions(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    std::unordered_multimap<size_t, Instruction*> seen;
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      if (!may_join(*i)) return nullptr;
      size_t hash = hash_of(*i);
      auto [first, last] = seen.equal_range(hash);
      for (auto one = first; one != last; ++one) {
        if (is_same(*one->second, *i)) return one->second;
      }
      seen.emplace(hash, i);
      return nullptr;
    });
  }
  return changed;
}

}  // namespace lamella::hlo
