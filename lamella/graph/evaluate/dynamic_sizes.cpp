// Runs rules on arrays of dynamic size.
#include "lamella/graph/evaluate/dynamic_sizes.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "lamella/graph/evaluate/indices.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/strided.h"
#include "lamella/graph/runtime/sized_value.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

bool is_dynamic(const Value& value, size_t d) {
  return is_sized(value) && value.shape().is_dynamic(static_cast<int64_t>(d));
}

// The value with these sizes, or without any if they are the whole static shape.
Value sized(const Shape* shape, const Value& whole, const Numbers& sizes) {
  bool is_whole = shape->is_static() && std::ranges::equal(sizes, shape->dimensions());
  return is_whole ? Value::reshaped(whole, shape) : with_sizes(shape, whole, sizes);
}

// The result of the rule for the operands' whole arrays.
Value run_whole(Step& step, Rule rule) {
  std::vector<Value> whole;
  for (const Value& operand : step.operands) whole.push_back(without_sizes(operand));
  Step plain{step.instruction, whole, step.run};
  return rule(plain);
}

// Repeats index 0 of a dimension in all others.
Value repeated(const Value& value, size_t d) {
  Numbers strides = row_major_strides(value.shape().dimensions()), none = strides;
  none[d] = 0;
  Value made = Value::uninitialized(value.shape_pointer());
  copy_strided(value.shape().element_type(), value.shape().dimensions(), value.data(), none,
               made.data(), strides);
  return made;
}

// The result is as large as the smallest operand in each dimension, except that an operand of size
// 1 is repeated to match the other.
Value run_elementwise(Step& step, Rule rule) {
  const Shape& shape = step.shape();
  Numbers sizes = copy_of(shape.dimensions());
  std::vector<Value> whole;
  for (const Value& operand : step.operands) whole.push_back(without_sizes(operand));
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<std::pair<size_t, int64_t>> given;
    for (size_t n = 0; n < step.operands.size(); ++n) {
      const Value& operand = step.operands[n];
      if (is_dynamic(operand, d)) given.emplace_back(n, sizes_of(operand)[d]);
    }
    if (given.empty()) continue;
    int64_t least = given[0].second, most = least;
    for (auto [n, size] : given) {
      least = std::min(least, size);
      most = std::max(most, size);
    }
    sizes[d] = least == 1 ? most : least;
    for (auto [n, size] : given) {
      if (size != 1 || most == 1) continue;
      LAMELLA_HLO_REQUIRE(given.size() == 2, step.instruction, "expected equal sizes in dimension ",
                          d, " of all operands, got ", least, " and ", most);
      whole[n] = repeated(whole[n], d);
    }
  }
  Step plain{step.instruction, whole, step.run};
  return sized(step.instruction.shape, rule(plain), sizes);
}

// ---- Operations on valid elements alone --------------------------------------------------------

// Cuts pairs of dimensions that the rule requires to be equal to the lesser of their sizes.
void match(Numbers& left, int64_t left_dimension, Numbers& right, int64_t right_dimension) {
  int64_t& a = left[static_cast<size_t>(left_dimension)];
  int64_t& b = right[static_cast<size_t>(right_dimension)];
  a = b = std::min(a, b);
}
void match_operands(const Instruction& i, std::vector<Numbers>& sizes) {
  switch (i.opcode) {
    case Opcode::Dot:
      for (auto [left, right] :
           {std::pair{AttributeKey::LhsContractingDims, AttributeKey::RhsContractingDims},
            {AttributeKey::LhsBatchDims, AttributeKey::RhsBatchDims}}) {
        auto from = i.integers(left), to = i.integers(right);
        for (size_t n = 0; n < from.size(); ++n) match(sizes[0], from[n], sizes[1], to[n]);
      }
      return;
    case Opcode::Concatenate:
    case Opcode::Sort:
    case Opcode::Reduce:
    case Opcode::ReduceWindow: {
      bool halves = i.opcode == Opcode::Reduce || i.opcode == Opcode::ReduceWindow;
      size_t count = halves ? sizes.size() / 2 : sizes.size();
      int64_t joined =
          i.opcode == Opcode::Concatenate ? i.integers(AttributeKey::Dimensions)[0] : -1;
      for (int pass = 0; pass < 2; ++pass) {  // the second brings the least size to all
        for (size_t n = 1; n < count; ++n) {
          for (int64_t d = 0; d < static_cast<int64_t>(sizes[0].size()); ++d) {
            if (d != joined) match(sizes[0], d, sizes[n], d);
          }
        }
      }
      return;
    }
    default:
      return;
  }
}

// The result of the rule for an instruction whose operands are cut to these sizes.
Value run_cut(Step& step, Rule rule, const std::vector<Numbers>& sizes) {
  const Instruction& i = step.instruction;
  std::vector<Value> cut;
  std::deque<Instruction> operands;
  std::vector<Instruction*> pointers;
  for (size_t n = 0; n < step.operands.size(); ++n) {
    const Value& operand = step.operands[n];
    bool is_whole =
        !operand.shape().is_array() ||
        (!is_sized(operand) && std::ranges::equal(sizes[n], i.operand_shape(n).dimensions()));
    cut.push_back(is_whole ? operand : cut_to(operand, sizes[n]));
    operands.push_back(*i.operands[n]);
    operands.back().shape = cut.back().shape_pointer();
    pointers.push_back(&operands.back());
  }
  Instruction exact = i;
  exact.operands = pointers;
  Shape shape = infer_shape(exact);
  exact.shape = &shape;
  Step done{exact, cut, step.run};
  Value result = rule(done);
  auto grown = [&](const Shape* bound, const Value& part) {
    std::span<const int64_t> made = part.shape().dimensions();
    bool fits = bound->rank() == part.shape().rank();
    for (size_t d = 0; fits && d < made.size(); ++d) fits = made[d] <= bound->dimensions()[d];
    LAMELLA_HLO_REQUIRE(fits, i, "expected a result within ", bound->to_string(false), ", got ",
                        part.shape().to_string(false));
    return sized(bound, grown_to(bound, part), copy_of(made));
  };
  if (shape.is_array()) return grown(i.shape, result);
  if (!shape.is_tuple()) return Value::token(i.shape);
  std::vector<Value> parts;
  for (size_t e = 0; e < result.size(); ++e) {
    parts.push_back(grown(&i.shape->tuple_shapes()[e], result.element(e)));
  }
  return Value::tuple(i.shape, parts);
}

std::vector<Numbers> operand_sizes(const Step& step) {
  std::vector<Numbers> sizes;
  for (const Value& operand : step.operands) {
    sizes.push_back(operand.shape().is_array() ? sizes_of(operand) : Numbers());
  }
  return sizes;
}

// ---- Operations with rules of their own --------------------------------------------------------

Value run_slice(Step& step, Rule rule) {
  Numbers sizes = copy_of(step.shape().dimensions());
  Numbers given = sizes_of(step.operands[0]);
  auto parts = step.instruction.find(AttributeKey::Slice)->slices();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!is_dynamic(step.operands[0], d) || sizes[d] <= 1)
      continue;  // XLA makes one element static
    int64_t left = std::max<int64_t>(given[d] - parts[d].start, 0);
    sizes[d] = std::min(sizes[d], (left + parts[d].stride - 1) / parts[d].stride);
  }
  return sized(step.instruction.shape, run_whole(step, rule), sizes);
}

Value run_dynamic_slice(Step& step, Rule rule) {
  Numbers sizes = copy_of(step.shape().dimensions());
  Numbers given = sizes_of(step.operands[0]);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!is_dynamic(step.operands[0], d) || sizes[d] == 1) continue;
    LAMELLA_HLO_REQUIRE(sizes[d] == step.operands[0].shape().dimensions()[d], step.instruction,
                        "expected a slice of the whole dynamic dimension ", d,
                        " or of one element, got ", sizes[d], " elements");
    sizes[d] = given[d];
  }
  return sized(step.instruction.shape, run_whole(step, rule), sizes);
}

Value run_update(Step& step, Rule rule) {
  Value &operand = step.operands[0], &update = step.operands[1];
  Numbers sizes = sizes_of(operand), valid = sizes_of(update);
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool replaced = update.shape().dimensions()[d] == operand.shape().dimensions()[d];
    if (replaced && is_dynamic(update, d)) sizes[d] = valid[d];
  }
  std::vector<Value> whole(step.operands.begin(), step.operands.end());
  whole[0] = without_sizes(operand);
  if (is_sized(update)) whole[1] = cut_to(update, valid);
  Step plain{step.instruction, whole, step.run};
  return sized(step.instruction.shape, rule(plain), sizes);
}

// Indices beyond the valid ones are left out; slices of whole dynamic dimensions keep their size.
Value run_gather(Step& step, Rule rule) {
  const Instruction& i = step.instruction;
  std::vector<Numbers> cut = operand_sizes(step);
  Numbers given = std::exchange(cut[0], copy_of(step.operands[0].shape().dimensions()));
  Value operand = step.operands[0];
  step.operands[0] = without_sizes(operand);
  Value made = run_cut(step, rule, cut);
  Numbers sizes = sizes_of(made);
  auto slices = i.integers(AttributeKey::SliceSizes);
  auto offsets = i.integers(AttributeKey::OffsetDims);
  size_t next = 0;
  for (int64_t d = 0; d < operand.shape().rank(); ++d) {
    auto at = static_cast<size_t>(d);
    if (contains(i.integers(AttributeKey::CollapsedSliceDims), d) ||
        contains(i.integers(AttributeKey::OperandBatchingDims), d)) {
      continue;
    }
    auto offset = static_cast<size_t>(offsets[next++]);
    if (is_dynamic(operand, at) && slices[at] == cut[0][at]) sizes[offset] = given[at];
  }
  return sized(i.shape, without_sizes(made), sizes);
}

Value run_scatter(Step& step, Rule rule) {
  const Instruction& i = step.instruction;
  size_t count = step.operands.size() / 2;
  std::vector<Numbers> cut = operand_sizes(step);
  Numbers sizes = cut[0];
  for (size_t n = 0; n < count; ++n) {
    cut[n] = copy_of(i.operand_shape(n).dimensions());
    step.operands[n] = without_sizes(step.operands[n]);
    // Window dimensions stay whole, since what they write beyond the sizes is not read.
    Numbers& update = cut[count + 1 + n];
    std::span<const int64_t> bounds = i.operand_shape(count + 1 + n).dimensions();
    Numbers& indices = cut[count];
    size_t next = 0;
    for (size_t d = 0; d < update.size(); ++d) {
      if (contains(i.integers(AttributeKey::UpdateWindowDims), static_cast<int64_t>(d))) {
        update[d] = bounds[d];
        continue;
      }
      if (static_cast<int64_t>(next) == i.integer(AttributeKey::IndexVectorDim)) ++next;
      match(update, static_cast<int64_t>(d), indices, static_cast<int64_t>(next++));
    }
  }
  Value made = run_cut(step, rule, cut);
  if (!step.shape().is_tuple()) return sized(i.shape, without_sizes(made), sizes);
  std::vector<Value> parts;
  for (size_t e = 0; e < made.size(); ++e) {
    parts.push_back(sized(&i.shape->tuple_shapes()[e], without_sizes(made.element(e)), sizes));
  }
  return Value::tuple(i.shape, parts);
}

// The valid elements in their order, in an array of these sizes.
Value refilled(const Step& step, const Numbers& sizes) {
  const Value& operand = step.operands[0];
  Shape shape = Shape::array(step.shape().element_type(), sizes);
  Value valid = cut_to(operand, sizes_of(operand));
  Value exact = Value::zeros(&shape);
  std::memcpy(exact.data(), valid.data(), std::min(exact.bytes(), valid.bytes()));
  return sized(step.instruction.shape, grown_to(step.instruction.shape, exact), sizes);
}

// Dimensions are grouped so that both sides of a group have as many elements. In each group one
// dynamic dimension of the result takes the elements that the valid part of the operand has.
Value run_reshape(Step& step) {
  const Instruction& i = step.instruction;
  const Shape& to = step.shape();
  std::span<const int64_t> from = step.operands[0].shape().dimensions();
  Numbers given = sizes_of(step.operands[0]), sizes = copy_of(to.dimensions());
  int64_t inferred = i.integer(AttributeKey::InferredDimension, -1);
  size_t a = 0, b = 0;
  while (a < from.size() || b < sizes.size()) {
    size_t first = b, first_given = a;
    int64_t left = 1, right = 1, valid = 1;
    do {
      bool takes_left = a < from.size() && (left <= right || b == sizes.size());
      if (takes_left) {
        left *= from[a];
        valid *= given[a++];
      } else {
        right *= to.dimension(static_cast<int64_t>(b++));
      }
    } while (left != right && (a < from.size() || b < sizes.size()));
    if (left == right) {  // trailing dimensions of size 1 belong to the last group
      while (a == from.size() && b < sizes.size() && sizes[b] == 1) ++b;
    }
    if (valid == left) continue;
    if (a - first_given == 1 && b - first == 1) {
      sizes[first] = valid;
      continue;
    }
    Numbers dynamic;
    for (size_t d = first; d < b; ++d) {
      auto dimension = static_cast<int64_t>(d);
      if (dimension == inferred) dynamic.assign(1, dimension);
      if (dimension == inferred) break;
      if (to.is_dynamic(dimension)) dynamic.push_back(dimension);
    }
    LAMELLA_HLO_REQUIRE(dynamic.size() == 1, i, "expected one dynamic dimension of ",
                        to.to_string(false), " to take the size of the operand's, got ",
                        dynamic.size());
    auto taking = static_cast<size_t>(dynamic[0]);
    sizes[taking] = valid / std::max<int64_t>(right / std::max<int64_t>(sizes[taking], 1), 1);
  }
  return refilled(step, sizes);
}

}  // namespace

Value evaluate_dynamic_reshape(Step& step) {
  const Instruction& i = step.instruction;
  Numbers sizes;
  int64_t elements = 1, valid = 1;
  for (size_t d = 0; d < step.shape().dimensions().size(); ++d) {
    sizes.push_back(IndexReader(step.operands[d + 1])[0]);
    int64_t most = step.shape().dimensions()[d];
    LAMELLA_HLO_REQUIRE(sizes[d] >= 0 && sizes[d] <= most, i, "expected a size of dimension ", d,
                        " from 0 to ", most, ", got ", sizes[d]);
    elements *= sizes[d];
  }
  for (int64_t size : sizes_of(step.operands[0])) valid *= size;
  LAMELLA_HLO_REQUIRE(elements == valid, i, "expected sizes of ", valid, " elements, got ",
                      braced(sizes));
  return refilled(step, sizes);
}

Value evaluate_set_dimension_size(Step& step) {
  const Instruction& i = step.instruction;
  auto d = static_cast<size_t>(i.integers(AttributeKey::Dimensions)[0]);
  Numbers sizes = sizes_of(step.operands[0]);
  int64_t size = IndexReader(step.operands[1])[0], most = step.shape().dimensions()[d];
  LAMELLA_HLO_REQUIRE(size >= 0 && size <= most, i, "expected a size of dimension ", d,
                      " from 0 to ", most, ", got ", size);
  sizes[d] = size;
  return sized(i.shape, without_sizes(step.operands[0]), sizes);
}

Value evaluate_get_dimension_size(Step& step) {
  auto d = static_cast<size_t>(step.instruction.integers(AttributeKey::Dimensions)[0]);
  Value result = step.result();
  result.values<int32_t>()[0] = static_cast<int32_t>(sizes_of(step.operands[0])[d]);
  return result;
}

Value run_with_sizes(Step& step, Rule rule) {
  const Instruction& i = step.instruction;
  if (std::ranges::none_of(step.operands, has_sizes)) return rule(step);
  Family family = opcode_family(i.opcode);
  switch (i.opcode) {
    case Opcode::SetDimensionSize:
    case Opcode::GetDimensionSize:
    case Opcode::DynamicReshape:
      return rule(step);
    case Opcode::Outfeed:
    case Opcode::Send:
      step.operands[0] = packed(step.operands[0]);
      return rule(step);
    case Opcode::Broadcast: {
      Numbers sizes = copy_of(step.shape().dimensions()), given = sizes_of(step.operands[0]);
      auto dimensions = i.integers(AttributeKey::Dimensions);
      for (size_t d = 0; d < given.size(); ++d) {
        sizes[static_cast<size_t>(dimensions[d])] = given[d];
      }
      return sized(i.shape, run_whole(step, rule), sizes);
    }
    case Opcode::Transpose: {
      Numbers sizes, given = sizes_of(step.operands[0]);
      for (int64_t d : i.integers(AttributeKey::Dimensions)) {
        sizes.push_back(given[static_cast<size_t>(d)]);
      }
      return sized(i.shape, run_whole(step, rule), sizes);
    }
    case Opcode::Slice:
      return run_slice(step, rule);
    case Opcode::DynamicSlice:
      return run_dynamic_slice(step, rule);
    case Opcode::DynamicUpdateSlice:
      return run_update(step, rule);
    case Opcode::Gather:
      return run_gather(step, rule);
    case Opcode::Scatter:
      return run_scatter(step, rule);
    case Opcode::Reshape:
      return run_reshape(step);
    case Opcode::Copy:
    case Opcode::Map:
    case Opcode::BitcastConvert:
    case Opcode::Bitcast:
      LAMELLA_HLO_REQUIRE(
          std::ranges::equal(step.shape().dimensions(), step.operands[0].shape().dimensions()), i,
          "expected an operand of static size, since the result has other ", "dimensions, got ",
          step.operands[0].shape().to_string(false));
      return run_elementwise(step, rule);
    default:
      break;
  }
  if (family == Family::Control || family == Family::Tuple || family == Family::Fusion) {
    return rule(step);
  }
  if (family == Family::Elementwise) return run_elementwise(step, rule);
  std::vector<Numbers> sizes = operand_sizes(step);
  match_operands(i, sizes);
  return run_cut(step, rule, sizes);
}

}  // namespace lamella::hlo
