// Decides which instructions are native, and groups them into regions.
#include "lamella/graph/execute/region.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/function_call.h"
#include "lamella/graph/evaluate/reduce_window.h"
#include "lamella/graph/execute/attention_call.h"
#include "lamella/graph/execute/select_scatter.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/passes/convolution_problem.h"

namespace lamella::hlo {
namespace {

bool is_native_type(ElementType type) { return has_kernels(type) && type != ElementType::C128; }
bool is_native_shape(const Shape& shape) {
  if (shape.is_tuple()) {
    return std::all_of(shape.tuple_shapes().begin(), shape.tuple_shapes().end(), is_native_shape);
  }
  return shape.is_array() && shape.is_static() && is_native_type(shape.element_type());
}

bool has_complex(const Shape& shape) {
  return shape.is_array() && is_complex(shape.element_type());
}
// When an opcode with native types is compiled: never, always, only if its result is
// floating-point, or only if has_native_details() accepts the instruction.
enum class AsCode : uint8_t { Never, Always, Floats, Details };
AsCode as_code(Opcode opcode) {
  static constexpr AsCode kAll[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           ...)                                                                   \
  AsCode::code,
#include "lamella/graph/hlo/opcode.def"
  };
  return kAll[static_cast<size_t>(opcode)];
}

// Whether an opcode is compiled for complex numbers. Functions of complex numbers are left to
// operators, which define the branch cuts.
enum class TakesComplex : uint8_t { No, Yes, Details };
bool takes_complex(const Instruction& i) {
  static constexpr TakesComplex kAll[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, ...)                                                  \
  TakesComplex::complex,
#include "lamella/graph/hlo/opcode.def"
  };
  TakesComplex takes = kAll[static_cast<size_t>(i.opcode)];
  if (takes != TakesComplex::Details) return takes == TakesComplex::Yes;
  if (i.opcode == Opcode::Convert) return has_complex(*i.shape);
  return i.text(AttributeKey::Direction) == "EQ" || i.text(AttributeKey::Direction) == "NE";
}

}  // namespace

// Called computations are compiled into their callers, so each further call of a computation
// duplicates its code.
const NativeRules::Known& NativeRules::known(const Computation& computation) {
  auto found = known_.find(&computation);
  if (found != known_.end()) return found->second;
  Known made;
  made.is_native = true;
  for (const Instruction* i : computation.instructions) {
    made.size = std::min(most_instructions_ + 1, made.size + 1 + expanded_size(*i));
    made.is_native = made.is_native && is_native(*i);
  }
  made.is_native = made.is_native && made.size <= most_instructions_;
  made.is_scalar = made.size <= most_instructions_ && is_scalar_function(computation);
  return known_[&computation] = made;
}
int64_t NativeRules::expanded_size(const Instruction& i) {
  int64_t size = 0;
  for_each_called(i, [&](const Computation& called) {
    size = std::min(most_instructions_ + 1, size + known(called).size);
  });
  return size;
}

// True if every instruction of a computation works lane by lane on scalars, as a reducer must.
bool NativeRules::is_scalar_function(const Computation& computation) {
  for (const Instruction* i : computation.instructions) {
    if (i->opcode == Opcode::Tuple && i == computation.root) continue;
    if (!i->shape->is_scalar() || !is_native_type(i->shape->element_type())) return false;
    if (i->opcode == Opcode::Call) {
      const Computation* called = i->computation(
          i->has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls);
      if (!known(*called).is_scalar || !called->root->shape->is_array()) return false;
      continue;
    }
    Family family = opcode_family(i->opcode);
    bool by_lane = family == Family::Elementwise || family == Family::Parameter ||
                   i->opcode == Opcode::Constant || moves_one_operand(i->opcode);
    if (!by_lane || !is_native(*i)) return false;
  }
  return true;
}

bool NativeRules::has_native_details(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::BitcastConvert:
      return element_bits(i.shape->element_type()) ==
             element_bits(i.operand_shape(0).element_type());
    case Opcode::Bitcast:
      return i.shape->is_row_major() && i.operand_shape(0).is_row_major() &&
             i.shape->element_type() == i.operand_shape(0).element_type() &&
             i.shape->elements() == i.operand_shape(0).elements();
    case Opcode::Broadcast: {
      auto dimensions = i.integers(AttributeKey::Dimensions);
      return std::is_sorted(dimensions.begin(), dimensions.end());
    }
    case Opcode::Complex:
      return i.shape->element_type() == ElementType::C64;
    case Opcode::Real:
    case Opcode::Imag:
      return i.operand_shape(0).element_type() == ElementType::C64;
    case Opcode::ReducePrecision:
      return i.integer(AttributeKey::ExponentBits) >= 1 &&
             i.integer(AttributeKey::MantissaBits) >= 0;
    case Opcode::Convolution:
      return convolution_problem(i).has_value();
    case Opcode::CustomCall:
      return attention_call(i).has_value() || function_call(i) != nullptr;
    case Opcode::Dot: {
      ElementType type = i.shape->element_type();
      bool same =
          type == i.operand_shape(0).element_type() && type == i.operand_shape(1).element_type();
      return same && type != ElementType::PRED;
    }
    case Opcode::Reduce:
    case Opcode::Sort:
      return known(*i.computation(AttributeKey::ToApply)).is_scalar;
    case Opcode::SelectAndScatter:
      return select_scatter(i).has_value();
    case Opcode::Scatter:
      return i.operands.size() == 3 && known(*i.computation(AttributeKey::ToApply)).is_scalar;
    case Opcode::ReduceWindow: {
      // Compiled windows visit every position, so huge windows are left to the rule.
      constexpr int64_t kMaxPositions = 4096;
      const Attribute* window = i.find(AttributeKey::Window);
      if (window == nullptr) return false;
      if (!known(*i.computation(AttributeKey::ToApply)).is_scalar) return false;
      if (is_scan(i)) return true;
      int64_t places = 1;
      for (const WindowDimension& w : window->window()) {
        if (w.size > kMaxPositions) return false;
        places = std::min(kMaxPositions + 1, places * w.size);
      }
      return places <= kMaxPositions;
    }
    case Opcode::While:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::Fusion: {
      bool native = true;
      for_each_called(i, [&](const Computation& c) { native = native && known(c).is_native; });
      return native;
    }
    default:
      return true;
  }
}

bool NativeRules::is_native(const Instruction& i, std::string* reason) {
  auto because = [&](auto&&... text) {
    if (reason != nullptr) *reason = str(text...);
    return false;
  };
  AsCode as = as_code(i.opcode);
  if (as == AsCode::Never) return because("opcode ", opcode_name(i.opcode));
  bool complex = has_complex(*i.shape);
  for (size_t n = 0; n < i.operands.size(); ++n)
    complex = complex || has_complex(i.operand_shape(n));
  if (complex && !takes_complex(i)) return because("complex numbers");
  // The attention operator has a side effect, as it draws random numbers, but only with dropout.
  if (i.opcode == Opcode::CustomCall && !has_native_details(i)) return because("attributes");
  if (i.opcode != Opcode::CustomCall && has_side_effect(i)) return because("side effects");
  if (i.has(AttributeKey::ControlPredecessors)) return because("control predecessors");
  if (!is_native_shape(*i.shape)) return because("type ", i.shape->to_string(false));
  auto is_tuple_constant = [](const Instruction& one) {
    return one.opcode == Opcode::Constant && !one.shape->is_array();
  };
  bool tuple_constant = is_tuple_constant(i);
  for (const Instruction* operand : i.operands) {
    tuple_constant = tuple_constant || is_tuple_constant(*operand);
  }
  if (tuple_constant) return because("constant of a tuple");
  for (size_t n = 0; n < i.operands.size(); ++n) {
    if (!is_native_shape(i.operand_shape(n))) {
      return because("type ", i.operand_shape(n).to_string(false));
    }
  }
  if (as == AsCode::Floats && !is_floating(i.shape->element_type())) {
    return because("type ", i.shape->to_string(false));
  }
  if (as == AsCode::Details && !has_native_details(i)) return because("attributes");
  return true;
}

void append_leaves(const Shape& shape, std::vector<const Shape*>* leaves) {
  if (shape.is_array()) leaves->push_back(&shape);
  for (const Shape& element : shape.tuple_shapes()) append_leaves(element, leaves);
}

std::vector<ScheduledStep> schedule(const Computation& computation, NativeRules* native,
                                    const std::function<bool(const Instruction&)>& chosen) {
  const std::vector<Instruction*>& all = computation.instructions;
  auto at = [](const Instruction* i) { return static_cast<size_t>(i->index); };
  std::vector<bool> needed(all.size(), false);
  needed[at(computation.root)] = true;
  for (size_t n = all.size(); n-- > 0;) {
    if (!needed[n] && !has_side_effect(*all[n])) continue;
    needed[n] = true;
    for (const Instruction* operand : all[n]->operands) needed[at(operand)] = true;
  }

  // Tuples are assembled between steps, unless a loop or a branch inside a region reads them. A
  // tuple element is read where the tuple is made. Users come first, as they decide.
  std::vector<bool> is_code(all.size(), false), for_control(all.size(), true);
  std::vector<int> users(all.size(), 0);
  if (native != nullptr) {
    int64_t size = 0;
    for (size_t n = all.size(); n-- > 0;) {
      const Instruction& i = *all[n];
      if (!needed[n] || i.opcode == Opcode::Parameter) continue;
      bool yes = native->is_native(i) && (!chosen || chosen(i));
      int64_t expanded = native->expanded_size(i);
      yes = yes && size + expanded <= native->most_instructions();
      if (yes) size += expanded;
      if (i.opcode == Opcode::Tuple) {
        yes = yes && for_control[n] && users[n] > 0 && &i != computation.root;
      }
      is_code[n] = yes;
      bool control = yes && (i.opcode == Opcode::While || i.opcode == Opcode::Conditional ||
                             i.opcode == Opcode::Call);
      for (const Instruction* operand : i.operands) {
        ++users[at(operand)];
        if (!control) for_control[at(operand)] = false;
      }
    }
    for (size_t n = 0; n < all.size(); ++n) {
      const Instruction& i = *all[n];
      if (i.opcode == Opcode::GetTupleElement) {
        is_code[n] = is_code[n] && is_code[at(i.operands[0])];
      }
    }
    // Constants are not code; regions that read a constant include it below.
    for (size_t n = 0; n < all.size(); ++n) {
      if (all[n]->opcode == Opcode::Constant) is_code[n] = false;
    }
  }

  // The level of an instruction is the number of changes from rules to code on the way to it.
  std::vector<int> level(all.size(), 0);
  int last_effect = 0, most = 0;
  for (size_t n = 0; n < all.size(); ++n) {
    if (!needed[n]) continue;
    const Instruction& i = *all[n];
    for (const Instruction* operand : i.operands) {
      size_t o = at(operand);
      bool free = operand->opcode == Opcode::Parameter || operand->opcode == Opcode::Constant;
      level[n] = std::max(level[n], level[o] + (is_code[n] && !is_code[o] && !free ? 1 : 0));
    }
    if (!is_code[n] && has_side_effect(i)) {
      level[n] = last_effect = std::max(level[n], last_effect);
    }
    most = std::max(most, level[n]);
  }

  // Values that only repeat fewer elements are calculated in each region that reads them, so that
  // no region writes them to memory for others.
  std::vector<bool> repeats(all.size(), false);
  for (size_t n = 0; n < all.size(); ++n) {
    const Instruction& i = *all[n];
    if (!is_code[n] || !i.shape->is_array()) continue;
    if (i.opcode == Opcode::Broadcast) {
      repeats[n] = i.operand_shape(0).elements() < i.shape->elements();
    } else if (opcode_family(i.opcode) == Family::Elementwise && !i.operands.empty()) {
      repeats[n] = std::all_of(i.operands.begin(), i.operands.end(), [&](const Instruction* o) {
        return repeats[at(o)] || o->opcode == Opcode::Constant;
      });
    }
  }
  // Steps that were chosen run as late as they are read, so that fewer regions hold them.
  if (chosen) {
    std::vector<int> read_at(all.size(), most);
    for (size_t n = all.size(); n-- > 0;) {
      if (!needed[n]) continue;
      if (is_code[n] && all[n] != computation.root) level[n] = std::max(level[n], read_at[n]);
      for (const Instruction* operand : all[n]->operands) {
        read_at[at(operand)] = std::min(read_at[at(operand)], level[n]);
      }
    }
  }
  std::vector<std::vector<size_t>> codes(static_cast<size_t>(most) + 1), rules(codes.size());
  std::vector<bool> read_by_rule(all.size(), false);
  read_by_rule[at(computation.root)] = true;
  for (size_t n = 0; n < all.size(); ++n) {
    if (!needed[n] || is_code[n]) continue;
    for (const Instruction* operand : all[n]->operands) read_by_rule[at(operand)] = true;
  }
  for (size_t n = 0; n < all.size(); ++n) {
    if (!needed[n] || all[n]->opcode == Opcode::Parameter) continue;
    if (repeats[n] && !read_by_rule[n]) continue;
    (is_code[n] ? codes : rules)[static_cast<size_t>(level[n])].push_back(n);
  }
  // A long region becomes several, as compiling takes time by the square of a function's length.
  constexpr int64_t kMaxRegion = 2000;
  std::vector<ScheduledStep> steps;
  std::vector<int> region_of(all.size(), -1);
  // Values that a rule or another region reads, and the root.
  std::vector<bool> leaves = read_by_rule;
  int regions = 0;
  for (size_t l = 0; l < codes.size(); ++l) {
    for (size_t next = 0; next < codes[l].size(); ++regions) {
      ScheduledStep step;
      std::unordered_set<const Instruction*> seen;
      int64_t size = 0;
      // Adds an instruction, and what is calculated again for it.
      auto add = [&](const Instruction* i) {
        std::vector<const Instruction*> added{i};
        for (size_t a = 0; a < added.size(); ++a) {
          if (added[a]->opcode == Opcode::Constant) continue;
          size += 1 + native->expanded_size(*added[a]);
          for (const Instruction* operand : added[a]->operands) {
            size_t o = at(operand);
            if (region_of[o] == regions || !seen.insert(operand).second) continue;
            if (operand->opcode == Opcode::Constant || repeats[o]) {
              added.push_back(operand);
            } else {
              step.region.inputs.push_back(operand);
              leaves[o] = true;
            }
          }
        }
        std::ranges::sort(added, {}, at);
        step.region.instructions.insert(step.region.instructions.end(), added.begin(), added.end());
      };
      while (next < codes[l].size() && size < kMaxRegion) {
        size_t n = codes[l][next++];
        region_of[n] = regions;
        add(all[n]);
      }
      steps.push_back(std::move(step));
    }
    for (size_t n : rules[l]) steps.push_back({all[n], {}});
  }
  regions = 0;
  for (ScheduledStep& step : steps) {
    if (step.instruction != nullptr) continue;
    for (const Instruction* i : step.region.instructions) {
      if (region_of[at(i)] == regions && leaves[at(i)]) step.region.outputs.push_back(i);
    }
    ++regions;
  }
  return steps;
}

}  // namespace lamella::hlo
