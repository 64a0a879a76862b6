// Moves channels to the last dimension in convolutions and the instructions that follow them.
#include "lamella/graph/passes/channels_last.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/graph/custom_call/function_call.h"
#include "lamella/graph/passes/convolution_problem.h"
#include "lamella/graph/passes/dead_code.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

// Orders of dimensions for transposes from channels in dimension 1 to channels last, and back.
Numbers to_last(int64_t rank) {
  Numbers order{0};
  for (int64_t d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}
Numbers from_last(int64_t rank) {
  Numbers order{0, rank - 1};
  for (int64_t d = 1; d + 1 < rank; ++d) order.push_back(d);
  return order;
}
// The number of dimension d once channels are last.
int64_t place(int64_t d, int64_t rank) { return d == 0 ? 0 : d == 1 ? rank - 1 : d - 1; }

bool are_first(int64_t batch, int64_t feature, const Numbers& spatial) {
  for (size_t s = 0; s < spatial.size(); ++s) {
    if (spatial[s] != static_cast<int64_t>(s) + 2) return false;
  }
  return batch == 0 && feature == 1;
}
Numbers spatial_of(int64_t first, size_t count) {
  Numbers spatial(count);
  std::iota(spatial.begin(), spatial.end(), first);
  return spatial;
}

// The instructions whose results have a use that is faster with channels last; users come first.
std::unordered_set<const Instruction*> wanted_last(const Computation& computation) {
  std::unordered_set<const Instruction*> wanted;
  for (size_t n = computation.instructions.size(); n-- > 0;) {
    const Instruction& i = *computation.instructions[n];
    bool wants = false;
    switch (i.opcode) {
      case Opcode::Convolution:
        wants = is_fast_last(i);
        break;
      case Opcode::ReduceWindow:
      case Opcode::Reduce:
        wants = true;
        break;
      case Opcode::Reshape:  // a flattening before a product
        wants = i.shape->rank() == 2;
        break;
      default:
        wants = wanted.count(&i) != 0 && is_elementwise(i);
    }
    if (wants && !i.operands.empty()) {
      size_t count = is_elementwise(i) ? i.operands.size() : 1;
      for (size_t o = 0; o < count; ++o) wanted.insert(i.operands[o]);
    }
  }
  return wanted;
}

class ChannelsLast {
 public:
  ChannelsLast(Rewriter& to, std::unordered_set<const Instruction*> wanted)
      : to_(to), wanted_(std::move(wanted)) {}

  Instruction* rewritten(Instruction* i) {
    Instruction* last = nullptr;
    if (i->opcode == Opcode::Convolution) {
      const ConvolutionDimensions& d = *i->find(AttributeKey::DimLabels)->convolution;
      bool becomes_last = wanted_.count(i) != 0 && is_fast_last(*i) &&
                          are_first(d.output_batch, d.output_feature, d.output_spatial);
      if (!becomes_last) return with_last_input(*i);
      last = convolution(*i);
    } else if (i->shape->is_array() && has_last_operand(*i)) {
      if (wanted_.count(i) != 0 && is_elementwise(*i)) {
        last = elementwise(*i);
      } else if (i->opcode == Opcode::ReduceWindow) {
        last = window(*i);
      } else if (i->opcode == Opcode::Reduce) {
        return reduce(*i);
      }
    }
    if (i->opcode == Opcode::Dot) return product(*i);
    if (last == nullptr) return nullptr;
    Instruction* first = to_.transpose(last, from_last(i->shape->rank()));
    last_[first] = last;
    return first;
  }

 private:
  Instruction* last_of(const Instruction* i) const {
    auto found = last_.find(i);
    return found == last_.end() ? nullptr : found->second;
  }
  bool has_last_operand(const Instruction& i) const {
    return std::ranges::any_of(i.operands, [&](const Instruction* o) { return last_of(o); });
  }
  static Shape shape_of(const Instruction& i) {
    Numbers sizes;
    for (int64_t d : to_last(i.shape->rank())) sizes.push_back(i.shape->dimension(d));
    return Shape::array(i.shape->element_type(), sizes);
  }

  static void lay(int64_t* batch, int64_t* feature, Numbers* spatial) {
    *batch = 0;
    *feature = static_cast<int64_t>(spatial->size()) + 1;
    *spatial = spatial_of(1, spatial->size());
  }
  Instruction* laid(const Instruction& i, const Shape& shape, Instruction* input,
                    const ConvolutionDimensions& d) {
    std::vector<Attribute> attributes;
    for (const Attribute& one : i.attributes) {
      attributes.push_back(one.key == AttributeKey::DimLabels ? to_.dim_labels(d) : one);
    }
    return to_.add(Opcode::Convolution, shape, {input, i.operands[1]}, attributes);
  }
  // The input with channels last, or null if there is none; `d` is changed to its dimensions.
  Instruction* last_input(const Instruction& i, ConvolutionDimensions* d) const {
    Instruction* last = last_of(i.operands[0]);
    if (last == nullptr || !are_first(d->input_batch, d->input_feature, d->input_spatial)) {
      return nullptr;
    }
    lay(&d->input_batch, &d->input_feature, &d->input_spatial);
    return last;
  }
  Instruction* with_last_input(const Instruction& i) {
    ConvolutionDimensions d = *i.find(AttributeKey::DimLabels)->convolution;
    Instruction* input = convolution_problem(i) ? last_input(i, &d) : nullptr;
    return input == nullptr ? nullptr : laid(i, *i.shape, input, d);
  }
  Instruction* convolution(const Instruction& i) {
    ConvolutionDimensions d = *i.find(AttributeKey::DimLabels)->convolution;
    Instruction* input = last_input(i, &d);
    lay(&d.output_batch, &d.output_feature, &d.output_spatial);
    return laid(i, shape_of(i), input == nullptr ? i.operands[0] : input, d);
  }

  // An operand of an elementwise operation with channels last; null if that needs a transpose.
  Instruction* operand(Instruction* i) {
    if (Instruction* last = last_of(i)) return last;
    if (i->shape->rank() == 0) return i;
    if (i->opcode != Opcode::Broadcast) return nullptr;
    Numbers dims;
    for (int64_t d : i->integers(AttributeKey::Dimensions)) {
      dims.push_back(place(d, i->shape->rank()));
    }
    if (!std::ranges::is_sorted(dims)) return nullptr;
    return to_.broadcast(i->operands[0], shape_of(*i), dims);
  }
  Instruction* elementwise(const Instruction& i) {
    std::vector<Instruction*> operands;
    for (Instruction* o : i.operands) {
      operands.push_back(operand(o));
      if (operands.back() == nullptr) return nullptr;
    }
    return to_.add(i.opcode, shape_of(i), operands,
                   std::vector<Attribute>(i.attributes.begin(), i.attributes.end()));
  }

  Instruction* window(const Instruction& i) {
    Instruction* last = last_of(i.operands[0]);
    if (i.operands.size() != 2 || last == nullptr || !i.has(AttributeKey::Window)) return nullptr;
    auto given = i.find(AttributeKey::Window)->window();
    std::vector<WindowDimension> dimensions;
    for (int64_t d : to_last(i.shape->rank())) {
      dimensions.push_back(given[static_cast<size_t>(d)]);
    }
    std::vector<Attribute> attributes;
    for (const Attribute& one : i.attributes) {
      attributes.push_back(one.key == AttributeKey::Window ? to_.window(dimensions) : one);
    }
    return to_.add(Opcode::ReduceWindow, shape_of(i), {last, i.operands[1]}, attributes);
  }

  // The kept dimensions stay in order, so the result is the same array.
  Instruction* reduce(const Instruction& i) {
    Instruction* last = last_of(i.operands[0]);
    if (i.operands.size() != 2 || last == nullptr) return nullptr;
    const int64_t rank = last->shape->rank();
    Numbers reduced, kept;
    auto given = i.integers(AttributeKey::Dimensions);
    for (int64_t d = 0; d < rank; ++d) {
      bool yes = std::ranges::find(given, d) != given.end();
      (yes ? reduced : kept).push_back(place(d, rank));
    }
    if (!std::ranges::is_sorted(kept)) return nullptr;
    std::ranges::sort(reduced);
    std::vector<Attribute> attributes;
    for (const Attribute& one : i.attributes) {
      attributes.push_back(one.key == AttributeKey::Dimensions
                               ? to_.integers(AttributeKey::Dimensions, reduced)
                               : one);
    }
    return to_.add(Opcode::Reduce, *i.shape, {last, i.operands[1]}, attributes);
  }

  // A product of a flattened array and smaller weights: the array is flattened with channels last,
  // and the weights' summed dimension is permuted to match.
  Instruction* product(const Instruction& i) {
    if (i.shape->rank() != 2 || !i.integers(AttributeKey::LhsBatchDims).empty()) return nullptr;
    constexpr AttributeKey kSummed[] = {AttributeKey::LhsContractingDims,
                                        AttributeKey::RhsContractingDims};
    for (size_t side = 0; side < 2; ++side) {
      const Instruction& rows = *i.operands[side];
      Instruction* weights = i.operands[1 - side];
      if (rows.opcode != Opcode::Reshape || rows.shape->rank() != 2 ||
          weights->shape->rank() != 2) {
        continue;
      }
      const Shape& whole = rows.operand_shape(0);
      Instruction* last = last_of(rows.operands[0]);
      auto summed = i.integers(kSummed[side]), by = i.integers(kSummed[1 - side]);
      if (last == nullptr || rows.shape->dimension(0) != whole.dimension(0) || summed.size() != 1 ||
          summed[0] != 1 || weights->shape->elements() > whole.elements()) {
        continue;
      }
      // Splits the summed dimension of the weights into channels and spatial dimensions.
      const bool behind = by[0] == 1;
      const int64_t kept = weights->shape->dimension(behind ? 0 : 1), rank = whole.rank();
      Numbers cut, order;
      if (behind) cut.push_back(kept);
      for (int64_t d = 1; d < rank; ++d) cut.push_back(whole.dimension(d));
      if (!behind) cut.push_back(kept);
      const int64_t first = behind ? 1 : 0;
      if (behind) order.push_back(0);
      for (int64_t d = 1; d + 1 < rank; ++d) order.push_back(first + d);
      order.push_back(first);
      if (!behind) order.push_back(rank - 1);
      auto sizes = weights->shape->dimensions();
      Instruction* turned = to_.reshape(to_.transpose(to_.reshape(weights, cut), order),
                                        Numbers(sizes.begin(), sizes.end()));
      auto row_sizes = rows.shape->dimensions();
      Instruction* flat = to_.reshape(last, Numbers(row_sizes.begin(), row_sizes.end()));
      std::vector<Instruction*> operands{flat, turned};
      if (side == 1) std::swap(operands[0], operands[1]);
      return to_.with_operands(&i, operands);
    }
    return nullptr;
  }

  Rewriter& to_;
  std::unordered_set<const Instruction*> wanted_;
  std::unordered_map<const Instruction*, Instruction*> last_;  // the same values with channels last
};

// A transpose that is the only use of a convolution: the convolution writes the transposed result.
Instruction* written_transposed(Rewriter& to, const Instruction& i) {
  if (i.opcode != Opcode::Transpose) return nullptr;
  const Instruction& convolution = *i.operands[0];
  if (convolution.opcode != Opcode::Convolution || to.uses(&convolution) != 1 ||
      !convolution_problem(convolution)) {
    return nullptr;
  }
  auto order = i.integers(AttributeKey::Dimensions);
  auto moved = [&](int64_t d) {
    return static_cast<int64_t>(std::ranges::find(order, d) - order.begin());
  };
  std::vector<Attribute> attributes;
  for (Attribute one : convolution.attributes) {
    if (one.key == AttributeKey::DimLabels) {
      ConvolutionDimensions d = *one.convolution;
      d.output_batch = moved(d.output_batch);
      d.output_feature = moved(d.output_feature);
      for (int64_t& s : d.output_spatial) s = moved(s);
      one = to.dim_labels(std::move(d));
    }
    attributes.push_back(one);
  }
  return to.add(Opcode::Convolution, *i.shape,
                std::vector<Instruction*>(convolution.operands.begin(), convolution.operands.end()),
                attributes);
}

}  // namespace

bool is_fast_last(const Instruction& i) {
  std::optional<ConvolutionProblem> problem = convolution_problem(i);
  if (!problem) return false;
  constexpr int64_t kVector = 16, kMaxBlockedProducts = 32, kMinProducts = 96;
  const ConvolutionProblem& p = *problem;
  if (p.groups != 1) return p.groups == p.in_channels && p.out_channels == p.in_channels;
  int64_t products = p.in_channels;
  for (const ConvolutionProblem::Spatial& s : p.spatial) products *= s.kernel;
  bool in_blocks = products <= kMaxBlockedProducts && p.out_channels == kVector;
  return p.out_channels >= kVector &&
         (p.in_channels >= kVector || products >= kMinProducts || in_blocks);
}

int64_t channels_last(Module& module) {
  int64_t convolutions = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    ChannelsLast layout(rewriter, wanted_last(*computation));
    rewriter.rewrite([&](Instruction* i) {
      Instruction* made = layout.rewritten(i);
      if (made != nullptr && i->opcode == Opcode::Convolution) ++convolutions;
      return made;
    });
  }
  if (convolutions == 0) return 0;
  remove_dead_code(module);
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    rewriter.rewrite([&](Instruction* i) { return written_transposed(rewriter, *i); });
  }
  return convolutions;
}

}  // namespace lamella::hlo
