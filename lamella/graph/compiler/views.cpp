// Views: strides of transposed and reshaped arrays.
#include "lamella/graph/compiler/views.h"

#include <optional>

namespace lamella::hlo::compiler {
namespace {

// The strides for another shape with as many elements; nullopt if no strides express it.
std::optional<std::vector<int64_t>> reshaped(const Shape& from, const std::vector<int64_t>& strides,
                                             const Shape& to) {
  std::vector<int64_t> made(static_cast<size_t>(to.rank()), 0);
  int64_t f = from.rank() - 1, t = to.rank() - 1;
  while (t >= 0) {
    if (to.dimension(t) == 1) {
      --t;
      continue;
    }
    while (f >= 0 && from.dimension(f) == 1) --f;
    if (f < 0) return std::nullopt;
    // Matches a group of dimensions on each side with equal numbers of elements.
    int64_t stride = strides[static_cast<size_t>(f)], whole = from.dimension(f);
    int64_t part = to.dimension(t);
    made[static_cast<size_t>(t)] = stride;
    while (part != whole) {
      if (part < whole) {
        do {
          if (--t < 0) return std::nullopt;
        } while (to.dimension(t) == 1);
        made[static_cast<size_t>(t)] = stride * part;
        part *= to.dimension(t);
      } else {
        do {
          if (--f < 0) return std::nullopt;
        } while (from.dimension(f) == 1);
        if (strides[static_cast<size_t>(f)] != stride * whole) return std::nullopt;
        whole *= from.dimension(f);
      }
    }
    --t;
    --f;
  }
  return made;
}

}  // namespace

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape.dimension(static_cast<int64_t>(d));
  }
  return strides;
}

View view_of(const Instruction* i, const std::unordered_set<const Instruction*>& inside) {
  if (i->shape->elements() == 0 || inside.count(i) == 0) return {i, dense_strides(*i->shape)};
  switch (i->opcode) {
    case Opcode::Transpose: {
      // Transposes of results of attention may be aliases: the call writes them transposed.
      if (i->operands[0]->opcode == Opcode::GetTupleElement) break;
      View view = view_of(i->operands[0], inside);
      std::vector<int64_t> strides;
      for (int64_t d : i->integers(AttributeKey::Dimensions)) {
        strides.push_back(view.strides[static_cast<size_t>(d)]);
      }
      return {view.base, strides};
    }
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::Copy: {
      View view = view_of(i->operands[0], inside);
      auto strides = reshaped(i->operand_shape(0), view.strides, *i->shape);
      if (strides) return {view.base, std::move(*strides)};
      break;
    }
    default:
      break;
  }
  return {i, dense_strides(*i->shape)};
}

}  // namespace lamella::hlo::compiler
