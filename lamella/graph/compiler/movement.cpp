// Emits opcodes that move elements: they read their operands at other indices.
#include <algorithm>
#include <functional>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {
namespace {

bool contains(std::span<const int64_t> list, int64_t n) {
  return std::find(list.begin(), list.end(), n) != list.end();
}

// True if an opcode that keeps the dimensions of its operand changes coordinates along dimension d.
bool is_moved(const Instruction* i, int64_t d) {
  const Shape &from = i->operand_shape(0), &to = *i->shape;
  switch (i->opcode) {
    case Opcode::Reverse:
      return contains(i->integers(AttributeKey::Dimensions), d);
    case Opcode::Pad: {
      const PaddingDimension& p = i->find(AttributeKey::Padding)->padding()[static_cast<size_t>(d)];
      return p.low != 0 || p.high != 0 || p.interior != 0;
    }
    default:  // slice and dynamic-slice
      return from.dimension(d) != to.dimension(d);
  }
}

}  // namespace

Cuts Emitter::cuts(const Instruction* i) {
  auto known = cuts_.find(i);
  if (known != cuts_.end()) return known->second;
  if (const Instruction* start = start_of(i)) return cuts(start);
  Cuts made;
  if (i->opcode == Opcode::Constant || place_of(i)) {
    made.assign(static_cast<size_t>(Extent(*i->shape).rank()) + 1, false);
  } else {
    made = find_cuts(i);
  }
  return cuts_[i] = made;
}
Cuts Emitter::cuts_inside(const Instruction* i) { return find_cuts(i); }

Cuts Emitter::find_cuts(const Instruction* i) {
  const Shape& shape = i->shape->is_tuple() ? i->shape->tuple_shapes()[0] : *i->shape;
  Extent to(shape);
  auto rank = static_cast<size_t>(to.rank());
  Cuts made(rank + 1, false);
  auto all = [&] { made.assign(rank + 1, true); };
  // Merges the operand's cuts; `position` maps the result's dimensions to the operand's, -1: none.
  auto along = [&](const std::vector<int>& position, const Cuts& operand) {
    for (size_t p = 1; p < rank; ++p) {
      int before = position[p - 1], at = position[p];
      if (before < 0 && at < 0) continue;
      if (before < 0 || at != before + 1 || operand[static_cast<size_t>(at)]) made[p] = true;
    }
  };
  if (rank > 0) {
    switch (i->opcode) {
      case Opcode::Constant:
        break;
      case Opcode::Broadcast: {
        Extent from(i->operand_shape(0));
        auto dimensions = i->integers(AttributeKey::Dimensions);
        std::vector<int> position(rank, -1);
        for (size_t q = 0; q < from.sizes.size(); ++q) {
          int64_t d = dimensions[static_cast<size_t>(from.dimensions[q])];
          position[static_cast<size_t>(to.position[static_cast<size_t>(d)])] = static_cast<int>(q);
        }
        along(position, cuts(i->operands[0]));
        break;
      }
      case Opcode::Transpose: {
        Extent from(i->operand_shape(0));
        auto dimensions = i->integers(AttributeKey::Dimensions);
        std::vector<int> position;
        for (int d : to.dimensions) {
          position.push_back(
              from.position[static_cast<size_t>(dimensions[static_cast<size_t>(d)])]);
        }
        along(position, cuts(i->operands[0]));
        break;
      }
      case Opcode::Copy:
      case Opcode::Bitcast:
      case Opcode::Reshape: {
        Cuts operand = cuts(i->operands[0]);
        if (Extent(i->operand_shape(0)).sizes == to.sizes) {
          made = operand;
        } else if (std::find(operand.begin(), operand.end(), true) != operand.end()) {
          all();
        }
        break;
      }
      case Opcode::DynamicSlice:
      case Opcode::Pad:
      case Opcode::Reverse:
      case Opcode::Slice: {
        Extent from(i->operand_shape(0));
        Cuts operand = cuts(i->operands[0]);
        std::vector<int> position;
        for (int d : to.dimensions) position.push_back(from.position[static_cast<size_t>(d)]);
        along(position, operand);
        for (size_t p = 0; p < rank; ++p) {
          if (position[p] < 0 || is_moved(i, to.dimensions[p])) made[p] = made[p + 1] = true;
        }
        break;
      }
      case Opcode::Iota: {
        int p = to.position[static_cast<size_t>(i->integer(AttributeKey::IotaDimension))];
        if (p >= 0) made[static_cast<size_t>(p)] = made[static_cast<size_t>(p) + 1] = true;
        break;
      }
      case Opcode::Gather:
      case Opcode::ReduceWindow:
        all();
        break;
      case Opcode::GetTupleElement:
      case Opcode::Reduce: {
        const Instruction* reduce = i->opcode == Opcode::Reduce ? i : i->operands[0];
        if (reduce->opcode == Opcode::ReduceWindow) {
          all();
          break;
        }
        Extent from(reduce->operand_shape(0));
        auto reduced = reduce->integers(AttributeKey::Dimensions);
        std::vector<int> position;
        for (int64_t d = 0; d < reduce->operand_shape(0).rank(); ++d) {
          if (contains(reduced, d) || from.position[static_cast<size_t>(d)] < 0) continue;
          position.push_back(from.position[static_cast<size_t>(d)]);
        }
        Cuts operand(static_cast<size_t>(from.rank()) + 1, false);
        for (size_t n = 0; n < reduce->operands.size() / 2; ++n) {
          Cuts one = cuts(reduce->operands[n]);
          for (size_t p = 0; p < one.size(); ++p) operand[p] = operand[p] || one[p];
        }
        along(position, operand);
        break;
      }
      default:
        for (const Instruction* operand : i->operands) {
          if (operand->shape->elements() == 1) continue;
          Cuts one = cuts(operand);
          for (size_t p = 0; p < rank; ++p) made[p] = made[p] || one[p];
        }
    }
  }
  return made;
}

namespace {

// The index of an operand with the same dimensions, in which the moved ones get other lanes.
Index with_moved(const Extent& from, const Extent& to, const Index& index,
                 const std::function<bool(int64_t)>& moved,
                 const std::function<Lane(int64_t)>& lane) {
  Index made;
  for (int q = 0; q < from.rank(); ++q) {
    auto d = static_cast<size_t>(from.dimensions[static_cast<size_t>(q)]);
    int p = to.position[d];
    if (p < 0 || moved(static_cast<int64_t>(d))) {
      made.push_back({q, 1, lane(static_cast<int64_t>(d))});
      continue;
    }
    for (const Group& g : index) {
      if (g.first == p) made.push_back({q, g.count, g.at});
    }
  }
  return made;
}

}  // namespace

// Clamps a start of a dynamic slice so that the slice is within the operand.
llvm::Value* Emitter::clamped(ElementType type, llvm::Value* start, int64_t largest) {
  llvm::Type* word = widened(b.getInt64Ty(), start);
  bool is_signed = element_kind(type) == ElementKind::Signed;
  llvm::Value* wide = is_signed ? b.CreateSExt(start, word) : b.CreateZExt(start, word);
  llvm::Value* most = llvm::ConstantInt::get(word, static_cast<uint64_t>(largest));
  if (!is_signed) return intrinsic(llvm::Intrinsic::umin, {wide, most});
  wide = intrinsic(llvm::Intrinsic::smax, {wide, llvm::ConstantInt::get(word, 0)});
  return intrinsic(llvm::Intrinsic::smin, {wide, most});
}

std::vector<Lane> Emitter::dynamic_starts(const Instruction* i, size_t first, const Shape& slice) {
  const Shape& shape = i->operand_shape(0);
  bool together = i->operands.size() == first + 1 && i->operand_shape(first).rank() == 1;
  std::vector<Lane> starts;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d) == slice.dimension(d)) {
      starts.push_back(uniform(i64(0)));
      continue;
    }
    size_t n = together ? first : first + static_cast<size_t>(d);
    Index at;
    if (together && shape.rank() > 1) at.push_back({0, 1, uniform(i64(d))});
    llvm::Value* start = value(i->operands[n], at);
    starts.push_back(uniform(clamped(i->operand_shape(n).element_type(), start,
                                     shape.dimension(d) - slice.dimension(d))));
  }
  return starts;
}

// The coordinate in an array of `size` elements, before it was spread with distance `apart`, of the
// element at coordinate `at`; `valid` is combined with whether there is one. Lanes without an
// element are masked; a uniform coordinate is clamped to the array instead.
Lane Emitter::spread_place(const Lane& at, int64_t size, int64_t apart, llvm::Value** valid) {
  llvm::Value* place = at.is_uniform() ? at.base : to_lanes(at);
  auto number = [&](int64_t n) -> llvm::Value* {
    return place->getType()->isVectorTy() ? splat(i64(n)) : i64(n);
  };
  llvm::Value* inside = b.CreateAnd(b.CreateICmpSGE(place, number(0)),
                                    b.CreateICmpSLT(place, number((size - 1) * apart + 1)));
  if (apart > 1) {
    inside = b.CreateAnd(inside, b.CreateICmpEQ(b.CreateSRem(place, number(apart)), number(0)));
    place = b.CreateSDiv(place, number(apart));
  }
  Lane lane = apart > 1 ? Lane{nullptr, 0, place} : at;
  if (at.is_uniform()) {
    llvm::Value* low = intrinsic(llvm::Intrinsic::smax, {place, i64(0)});
    lane = uniform(intrinsic(llvm::Intrinsic::smin, {low, i64(size - 1)}));
  } else {
    mask = mask == nullptr ? inside : b.CreateAnd(mask, inside);
  }
  if (*valid != nullptr) {
    even_out({valid, &inside});
    inside = b.CreateAnd(*valid, inside);
  }
  *valid = inside;
  return lane;
}

llvm::Value* Emitter::padded(const Instruction* i, const Index& index) {
  const Instruction* operand = i->operands[0];
  llvm::Value* outside = value(i->operands[1], {});
  if (operand->shape->elements() == 0) return outside;
  Extent from(*operand->shape), to(*i->shape);
  auto padding = i->find(AttributeKey::Padding)->padding();
  llvm::Value* inside = nullptr;
  llvm::Value* mask_before = mask;
  std::vector<Lane> lanes_of(static_cast<size_t>(i->shape->rank()));
  for (int64_t d = 0; d < i->shape->rank(); ++d) {
    const PaddingDimension& p = padding[static_cast<size_t>(d)];
    if (!is_moved(i, d)) continue;
    lanes_of[static_cast<size_t>(d)] =
        spread_place(shifted(of_dimension(to, index, d), -p.low), operand->shape->dimension(d),
                     p.interior + 1, &inside);
  }
  begin_scope();
  Index at = with_moved(
      from, to, index, [&](int64_t d) { return is_moved(i, d); },
      [&](int64_t d) { return lanes_of[static_cast<size_t>(d)]; });
  llvm::Value* x = value(operand, at);
  end_scope();
  mask = mask_before;
  if (inside == nullptr) return x;
  even_out({&x, &outside});
  if (inside->getType()->isVectorTy()) even_out({&inside, &x, &outside});
  return b.CreateSelect(inside, x, outside);
}

llvm::Value* Emitter::gathered(const Instruction* i, const Index& index) {
  const Shape &from = i->operand_shape(0), &places = i->operand_shape(1);
  Extent to(*i->shape), operand(from), vectors(places);
  auto slice_sizes = i->integers(AttributeKey::SliceSizes);
  // Without elements in its slices, in a collapsed dimension, there is nothing to read.
  if (contains(slice_sizes, 0)) {
    return llvm::Constant::getNullValue(register_type(from.element_type()));
  }
  auto offset_dims = i->integers(AttributeKey::OffsetDims);
  auto batching = i->integers(AttributeKey::OperandBatchingDims);
  auto collapsed = i->integers(AttributeKey::CollapsedSliceDims);
  auto map = i->integers(AttributeKey::StartIndexMap);
  auto places_batching = i->integers(AttributeKey::StartIndicesBatchingDims);
  int64_t vector_dim = i->integer(AttributeKey::IndexVectorDim);
  // The coordinates of each dimension of the indices but the one that holds the index vectors.
  std::vector<Lane> batch(static_cast<size_t>(places.rank()));
  int64_t next = 0;
  for (int64_t d = 0; d < i->shape->rank(); ++d) {
    if (contains(offset_dims, d)) continue;
    if (next == vector_dim) ++next;
    batch[static_cast<size_t>(next++)] = of_dimension(to, index, d);
  }
  size_t offset = 0;
  Index at;
  for (int64_t k = 0; k < from.rank(); ++k) {
    Lane lane = uniform(i64(0));
    bool is_batch = contains(batching, k);
    if (!is_batch && !contains(collapsed, k)) {
      lane = of_dimension(to, index, offset_dims[offset++]);
    }
    int q = operand.position[static_cast<size_t>(k)];
    if (q < 0) continue;
    if (is_batch) {
      auto n =
          static_cast<size_t>(std::find(batching.begin(), batching.end(), k) - batching.begin());
      lane = batch[static_cast<size_t>(places_batching[n])];
    } else if (contains(map, k)) {
      auto component = std::find(map.begin(), map.end(), k) - map.begin();
      Index vector;
      for (int p = 0; p < vectors.rank(); ++p) {
        int d = vectors.dimensions[static_cast<size_t>(p)];
        vector.push_back(
            {p, 1, d == vector_dim ? uniform(i64(component)) : batch[static_cast<size_t>(d)]});
      }
      llvm::Value* start = clamped(places.element_type(), value(i->operands[1], vector),
                                   from.dimension(k) - slice_sizes[static_cast<size_t>(k)]);
      lane = plus(lane, start->getType()->isVectorTy() ? Lane{nullptr, 0, start} : uniform(start));
    }
    at.push_back({q, 1, lane});
  }
  return value(i->operands[0], at);
}

llvm::Value* Emitter::movement(const Instruction* i, const Index& index) {
  Extent to(*i->shape);
  if (i->opcode == Opcode::Iota) {
    ElementType type = i->shape->element_type();
    Lane at = of_dimension(to, index, i->integer(AttributeKey::IotaDimension));
    llvm::Value* n = at.is_uniform() ? at.base : to_lanes(at);
    llvm::Type* t = widened(register_type(type), n);
    if (is_floating(type)) return rounded(type, b.CreateSIToFP(n, t));
    return b.CreateTrunc(n, t);
  }
  const Instruction* operand = i->operands[0];
  Extent from(*operand->shape);
  switch (i->opcode) {
    case Opcode::Broadcast: {
      auto dimensions = i->integers(AttributeKey::Dimensions);
      Index at;
      for (int q = 0; q < from.rank(); ++q) {
        int64_t d = dimensions[static_cast<size_t>(from.dimensions[static_cast<size_t>(q)])];
        int p = to.position[static_cast<size_t>(d)];
        for (const Group& g : index) {
          if (g.first == p) at.push_back({q, g.count, g.at});
        }
      }
      return value(operand, at);
    }
    case Opcode::Transpose: {
      auto dimensions = i->integers(AttributeKey::Dimensions);
      Index at;
      for (const Group& g : index) {
        auto d = static_cast<size_t>(to.dimensions[static_cast<size_t>(g.first)]);
        at.push_back({from.position[static_cast<size_t>(dimensions[d])], g.count, g.at});
      }
      std::sort(at.begin(), at.end(),
                [](const Group& x, const Group& y) { return x.first < y.first; });
      return value(operand, at);
    }
    case Opcode::Copy:
    case Opcode::Bitcast:
    case Opcode::Reshape:
      if (from.sizes == to.sizes) return value(operand, index);
      return value(operand, split(from, cuts(operand), linear(to, index)));
    case Opcode::Reverse:
      return value(operand, with_moved(
                                from, to, index, [&](int64_t d) { return is_moved(i, d); },
                                [&](int64_t d) {
                                  return shifted(times(of_dimension(to, index, d), -1),
                                                 i->shape->dimension(d) - 1);
                                }));
    case Opcode::Slice: {
      auto parts = i->find(AttributeKey::Slice)->slices();
      return value(operand, with_moved(
                                from, to, index, [&](int64_t d) { return is_moved(i, d); },
                                [&](int64_t d) {
                                  const SliceDimension& part = parts[static_cast<size_t>(d)];
                                  return shifted(times(of_dimension(to, index, d), part.stride),
                                                 part.start);
                                }));
    }
    case Opcode::DynamicSlice: {
      std::vector<Lane> starts = dynamic_starts(i, 1, *i->shape);
      return value(operand, with_moved(
                                from, to, index, [&](int64_t d) { return is_moved(i, d); },
                                [&](int64_t d) {
                                  return plus(of_dimension(to, index, d),
                                              starts[static_cast<size_t>(d)]);
                                }));
    }
    case Opcode::Pad:
      return padded(i, index);
    case Opcode::Gather:
      return gathered(i, index);
    default:
      LAMELLA_INTERNAL_ASSERT(false, "compiler: expected a movement, got ", opcode_name(i->opcode));
  }
}

}  // namespace lamella::hlo::compiler
