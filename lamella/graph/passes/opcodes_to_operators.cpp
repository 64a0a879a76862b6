// Replaces instructions by calls of operators.
//
// Note [Which operators mean the same]
//   An operator may replace an opcode only for element types on which both give the same result for
//   every element, special values included. HLO defines integer division by zero, saturates
//   conversions to integers, and gives NaN for the sign of NaN; the operators do not, so those
//   instructions stay with the evaluator's rules. Both may sum in any order.
#include "lamella/graph/passes/opcodes_to_operators.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/dispatch/operator_entry.h"
#include "lamella/dispatch/registry.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/hlo/infer.h"
#include "lamella/graph/hlo/single_operation.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

using Names = std::array<std::string, kOpcodeCount>;
Names find_operators() {
  Names names;
  std::lock_guard lock(Registry::get().mutex());
  for (const OperatorEntry* entry : Registry::get().entries()) {
    for (const std::string& tag : entry->tags) {
      if (!tag.starts_with("hlo:")) continue;
      std::optional<Opcode> opcode = opcode_from_name(std::string_view(tag).substr(4));
      if (!opcode || opcode_family(*opcode) != Family::Elementwise) continue;
      // Other overloads take scalars, or write to their arguments.
      const std::string& overload = entry->overload_storage;
      bool is_plain = overload.empty() || overload == "Tensor" || overload == "self" ||
                      overload == "Tensor_Tensor";
      if (!entry->defined() || !is_plain || entry->name_storage.ends_with('_')) continue;
      names[static_cast<size_t>(*opcode)] = entry->full_name();
    }
  }
  return names;
}

bool has_tensors(const Shape& shape) {
  return shape.is_array() && shape.is_static() && has_kernels(shape.element_type());
}

// True if the opcode's operator gives the same results on operands of this type. Functions of
// complex numbers mostly stay with the rules, which have the branch cuts of C99 and handle huge
// arguments.
bool means_the_same(Opcode opcode, ElementType type) {
  static constexpr Takes kAll[] = {
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, same, ...)                                   \
  Takes::same,
#include "lamella/graph/hlo/opcode.def"
  };
  return is_taken(kAll[static_cast<size_t>(opcode)], type);
}

class Maker {
 public:
  Maker(Rewriter& to, int64_t least) : to_(to), least_(least) {}

  Instruction* as_operator(const Instruction& i) {
    if (i.shape->is_tuple() || !has_tensors(*i.shape) || has_side_effect(i)) return nullptr;
    int64_t most = i.shape->elements();
    for (size_t n = 0; n < i.operands.size(); ++n) {
      if (!has_tensors(i.operand_shape(n)) || i.operand_shape(n).elements() == 0) return nullptr;
      most = std::max(most, i.operand_shape(n).elements());
    }
    // A function of floats always uses its operator, so that its bits do not depend on the element
    // count.
    const bool has_kernel =
        i.operands.size() == 1 || i.opcode == Opcode::Atan2 || i.opcode == Opcode::Power;
    bool is_function = opcode_family(i.opcode) == Family::Elementwise && has_kernel &&
                       is_floating(i.operand_shape(0).element_type());
    if ((most < least_ && !is_function) || i.shape->elements() == 0) return nullptr;
    switch (i.opcode) {
      case Opcode::Divide:
        // The opcode has the infinities of C99's Annex G, which the operator does not.
        if (is_complex(i.shape->element_type())) return nullptr;
        break;
      case Opcode::Compare:
        return compare(i);
      case Opcode::Select:
        return call(i, "aten::where.self", "");
      case Opcode::Clamp:
        return is_floating(i.shape->element_type()) || is_integral(i.shape->element_type())
                   ? call(i, "aten::clamp.Tensor", "%1, %0, %2")
                   : nullptr;
      case Opcode::Convert:
        return convert(i);
      case Opcode::Real:
        return is_complex(i.operand_shape(0).element_type()) ? call(i, "aten::real", "") : nullptr;
      case Opcode::Imag:
        return is_complex(i.operand_shape(0).element_type()) ? call(i, "aten::imag", "") : nullptr;
      case Opcode::IsFinite:
        return call(i, "aten::isfinite", "%0");
      case Opcode::Transpose:
        return transposed(i.operands[0], copy_of(i.integers(AttributeKey::Dimensions)));
      case Opcode::Reverse:
        return call(i, "aten::flip", str("%0, [", numbers(i, AttributeKey::Dimensions), "]"));
      case Opcode::Broadcast:
        return broadcast(i);
      case Opcode::Slice:
        return slice(i);
      case Opcode::Concatenate:
        return concatenate(i);
      case Opcode::Dot:
        return dot(i);
      case Opcode::Reduce:
        return reduce(i);
      default:
        break;
    }
    std::string_view name = operator_of(i.opcode);
    if (name.empty() || !means_the_same(i.opcode, i.operand_shape(0).element_type())) {
      return nullptr;
    }
    return call(i, name, "");
  }

 private:
  static std::string joined(const std::vector<int64_t>& numbers) {
    std::string text;
    for (int64_t n : numbers) text += str(text.empty() ? "" : ", ", n);
    return text;
  }
  static std::string numbers(const Instruction& i, AttributeKey key) {
    auto all = i.integers(key);
    return joined({all.begin(), all.end()});
  }
  Instruction* made(const Shape& shape, std::string_view target, const std::string& arguments,
                    const std::vector<Instruction*>& operands) {
    std::vector<Attribute> attributes{to_.text(AttributeKey::CustomCallTarget, target)};
    if (!arguments.empty()) {
      attributes.push_back(to_.text(AttributeKey::BackendConfig, str("\"(", arguments, ")\"")));
    }
    return to_.add(Opcode::CustomCall, shape, operands, attributes);
  }
  // An elementwise call takes a broadcast scalar as the scalar, if another operand has the full
  // shape.
  Instruction* call(const Instruction& i, std::string_view target, const std::string& arguments) {
    std::vector<Instruction*> operands(i.operands.begin(), i.operands.end());
    auto is_number = [&](Instruction* operand) { return numbers_.count(operand) != 0; };
    if (!std::ranges::all_of(operands, is_number)) {
      for (Instruction*& operand : operands) {
        if (is_number(operand)) operand = numbers_.at(operand);
      }
    }
    return made(*i.shape, target, arguments, operands);
  }
  Instruction* transposed(Instruction* x, const std::vector<int64_t>& order) {
    if (std::ranges::is_sorted(order)) return x;
    std::vector<int64_t> sizes;
    for (int64_t d : order) sizes.push_back(x->shape->dimension(d));
    return made(Shape::array(x->shape->element_type(), sizes), "aten::permute",
                str("%0, [", joined(order), "]"), {x});
  }

  Instruction* compare(const Instruction& i) {
    ElementType type = i.operand_shape(0).element_type();
    bool is_total = i.has(AttributeKey::Type) && i.text(AttributeKey::Type) == "TOTALORDER";
    if (is_floating(type) && is_total) return nullptr;
    std::string_view direction = i.text(AttributeKey::Direction);
    if (is_complex(type) && direction != "EQ" && direction != "NE") return nullptr;
    std::string name = "aten::";
    for (char c : direction) name += static_cast<char>(c - 'A' + 'a');
    return call(i, name + ".Tensor", "");
  }

  Instruction* convert(const Instruction& i) {
    ElementType from = i.operand_shape(0).element_type(), to = i.shape->element_type();
    bool is_exact = from == ElementType::PRED || (is_integral(from) && !is_floating(to)) ||
                    to == ElementType::PRED;
    // The operators round twice from 64 to 16 bits.
    bool is_float = (is_floating(from) || is_integral(from)) && is_floating(to) &&
                    (element_bits(to) > 16 || element_bits(from) <= 32);
    bool is_wider = is_complex(to) && (is_complex(from) || is_floating(from));
    if (!is_exact && !is_float && !is_wider) return nullptr;
    return call(i, "aten::_to_copy", str("%0, dtype=", dtype_name(*scalar_type_of(to))));
  }

  Instruction* broadcast(const Instruction& i) {
    auto dims = i.integers(AttributeKey::Dimensions);
    if (!std::ranges::is_sorted(dims)) return nullptr;
    std::vector<int64_t> sizes(static_cast<size_t>(i.shape->rank()), 1);
    for (size_t d = 0; d < dims.size(); ++d) {
      sizes[static_cast<size_t>(dims[d])] = i.operand_shape(0).dimension(static_cast<int64_t>(d));
    }
    auto to = i.shape->dimensions();
    Instruction* repeated =
        made(*i.shape, "aten::expand", str("%0, [", joined({to.begin(), to.end()}), "]"),
             {to_.reshape(i.operands[0], sizes)});
    if (dims.empty()) numbers_.emplace(repeated, i.operands[0]);
    return repeated;
  }

  // A slice is one strided view.
  Instruction* slice(const Instruction& i) {
    std::vector<int64_t> strides = row_major_strides(i.operand_shape(0).dimensions());
    int64_t offset = 0;
    auto parts = i.find(AttributeKey::Slice)->slices();
    for (size_t d = 0; d < parts.size(); ++d) {
      offset += parts[d].start * strides[d];
      strides[d] *= parts[d].stride;
    }
    auto sizes = i.shape->dimensions();
    return made(
        *i.shape, "aten::as_strided",
        str("%0, [", joined({sizes.begin(), sizes.end()}), "], [", joined(strides), "], ", offset),
        {i.operands[0]});
  }

  Instruction* concatenate(const Instruction& i) {
    std::string list;
    for (size_t n = 0; n < i.operands.size(); ++n) list += str(n == 0 ? "%" : ", %", n);
    return made(*i.shape, "aten::cat",
                str("[", list, "], ", i.integers(AttributeKey::Dimensions)[0]),
                {i.operands.begin(), i.operands.end()});
  }

  // As a batched matrix product.
  Instruction* dot(const Instruction& i) {
    ElementType type = i.shape->element_type();
    if (type == ElementType::PRED || i.operand_shape(0).element_type() != type ||
        i.operand_shape(1).element_type() != type) {
      return nullptr;
    }
    std::vector<int64_t> sizes[2], orders[2];
    int64_t batches = 1, sums = 1;
    for (size_t n = 0; n < 2; ++n) {
      const Shape& shape = i.operand_shape(n);
      auto batch = i.integers(n == 0 ? AttributeKey::LhsBatchDims : AttributeKey::RhsBatchDims);
      auto sum =
          i.integers(n == 0 ? AttributeKey::LhsContractingDims : AttributeKey::RhsContractingDims);
      std::vector<int64_t> kept;
      batches = sums = 1;
      int64_t rest = 1;
      for (int64_t d : batch) batches *= shape.dimension(d);
      for (int64_t d : sum) sums *= shape.dimension(d);
      for (int64_t d = 0; d < shape.rank(); ++d) {
        if (contains(batch, d) || contains(sum, d)) continue;
        kept.push_back(d);
        rest *= shape.dimension(d);
      }
      std::vector<int64_t>& order = orders[n];
      order.assign(batch.begin(), batch.end());
      if (n == 0) order.insert(order.end(), kept.begin(), kept.end());
      order.insert(order.end(), sum.begin(), sum.end());
      if (n == 1) order.insert(order.end(), kept.begin(), kept.end());
      sizes[n] = n == 0 ? std::vector{batches, rest, sums} : std::vector{batches, sums, rest};
    }
    Instruction* x = to_.reshape(transposed(i.operands[0], orders[0]), sizes[0]);
    Instruction* y = to_.reshape(transposed(i.operands[1], orders[1]), sizes[1]);
    Instruction* product =
        made(Shape::array(type, {batches, sizes[0][1], sizes[1][2]}), "aten::bmm", "", {x, y});
    auto result = i.shape->dimensions();
    return to_.reshape(product, {result.begin(), result.end()});
  }

  Instruction* reduce(const Instruction& i) {
    if (i.operands.size() != 2) return nullptr;
    std::optional<Opcode> opcode = single_operation(*i.computation(AttributeKey::ToApply));
    ElementType type = i.shape->element_type();
    if (!opcode) return nullptr;
    auto dims = i.integers(AttributeKey::Dimensions);
    if (dims.empty()) return nullptr;
    std::string list = str("[", numbers(i, AttributeKey::Dimensions), "]"), target, arguments;
    bool is_real = is_floating(type) || is_integral(type);
    if (*opcode == Opcode::Add && (is_real || is_complex(type))) {
      target = "aten::sum.dim_IntList";
      arguments = str("%0, ", list, ", False, dtype=", dtype_name(*scalar_type_of(type)));
    } else if (*opcode == Opcode::Multiply && dims.size() == 1 && (is_real || is_complex(type))) {
      target = "aten::prod.dim_int";
      arguments = str("%0, ", dims[0], ", False, dtype=", dtype_name(*scalar_type_of(type)));
    } else if (*opcode == Opcode::Maximum && is_real) {
      target = "aten::amax";
    } else if (*opcode == Opcode::Minimum && is_real) {
      target = "aten::amin";
    } else if (*opcode == Opcode::And && type == ElementType::PRED) {
      target = "aten::all.dims";
    } else if (*opcode == Opcode::Or && type == ElementType::PRED) {
      target = "aten::any.dims";
    } else {
      return nullptr;
    }
    if (arguments.empty()) arguments = str("%0, ", list);
    Instruction* reduced = made(*i.shape, target, arguments, {i.operands[0]});
    // The initial value is combined as one more element, unless it changes none: sums of the
    // operator begin with 0.
    const Instruction* start = i.operands[1];
    if (start->opcode == Opcode::Constant && is_real) {
      const double number = start->literal->real_at(0);
      const double same = *opcode == Opcode::Add        ? 0
                          : *opcode == Opcode::Multiply ? 1
                          : *opcode == Opcode::Maximum  ? -HUGE_VAL
                                                        : HUGE_VAL;
      if (number == same) return reduced;
    }
    return made(*i.shape, operator_of(*opcode), "", {reduced, i.operands[1]});
  }

  Rewriter& to_;
  int64_t least_;
  // Arrays that repeat a scalar, and the scalar.
  std::unordered_map<const Instruction*, Instruction*> numbers_;
};

}  // namespace

void find_steps(const Computation& computation, std::unordered_set<const Computation*>* found) {
  if (!found->insert(&computation).second) return;
  for (const Instruction* i : computation.instructions) {
    if (i->opcode != Opcode::While && i->opcode != Opcode::Conditional &&
        i->opcode != Opcode::Call && i->opcode != Opcode::Fusion) {
      continue;
    }
    for_each_called(*i, [&](const Computation& called) { find_steps(called, found); });
  }
}

std::string_view operator_of(Opcode opcode) {
  // A function-local static would have a guard: see Note [Forking]. Threads that race here find
  // equal names.
  static std::atomic<const Names*> found{nullptr};
  const Names* names = found.load(std::memory_order_acquire);
  if (names == nullptr) {
    auto made = std::make_unique<Names>(find_operators());
    if (found.compare_exchange_strong(names, made.get())) names = made.release();
  }
  return (*names)[static_cast<size_t>(opcode)];
}

int64_t opcodes_to_operators(Module& module, const std::function<bool(const Instruction&)>& is_code,
                             int64_t least) {
  std::unordered_set<const Computation*> steps;
  find_steps(*module.entry, &steps);
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    if (steps.count(computation) == 0) continue;
    // Asked before anything is replaced, as the answer may depend on what reads an instruction.
    std::unordered_set<const Instruction*> code;
    for (const Instruction* i : computation->instructions) {
      if (is_code(*i)) code.insert(i);
    }
    Rewriter rewriter(module, *computation);
    Maker maker(rewriter, least);
    changed += rewriter.rewrite([&](Instruction* i) -> Instruction* {
      return code.contains(i) ? nullptr : maker.as_operator(*i);
    });
  }
  return changed;
}

}  // namespace lamella::hlo
