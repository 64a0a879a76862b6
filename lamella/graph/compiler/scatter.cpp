// Emits scatters: combines windows of updates into an array, one window after the other.
#include <algorithm>

#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {
namespace {

bool contains(std::span<const int64_t> list, int64_t n) {
  return std::find(list.begin(), list.end(), n) != list.end();
}
std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (size_t d = strides.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * shape.dimension(static_cast<int64_t>(d));
  }
  return strides;
}

}  // namespace

// See Note [Scatter] in the evaluator: a window that is not completely inside is skipped.
void Emitter::scatter(const Instruction* i) {
  const Shape &shape = *i->shape, &index_shape = i->operand_shape(1);
  const Shape& update_shape = i->operand_shape(2);
  const Place to = places.at(i)[0], from = *place_of(i->operands[0]);
  if (!(from == to) && shape.bytes() > 0) {
    b.CreateMemCpy(pointer(to), llvm::Align(1), pointer(from), llvm::Align(1),
                   static_cast<uint64_t>(shape.bytes()));
  }
  if (update_shape.elements() == 0 || shape.elements() == 0) return;
  const Place indices = *place_of(i->operands[1]), updates = *place_of(i->operands[2]);
  auto window_dims = i->integers(AttributeKey::UpdateWindowDims);
  auto inserted = i->integers(AttributeKey::InsertedWindowDims);
  auto batching = i->integers(AttributeKey::InputBatchingDims);
  auto index_batching = i->integers(AttributeKey::ScatterIndicesBatchingDims);
  auto map = i->integers(AttributeKey::ScatterDimsToOperandDims);
  int64_t vector_dim = i->integer(AttributeKey::IndexVectorDim);
  std::vector<int64_t> target = strides_of(shape), index_stride = strides_of(index_shape);
  std::vector<int64_t> update = strides_of(update_shape);

  struct Loop {
    int64_t size, target, update;
  };
  std::vector<Loop> window;
  std::vector<int64_t> window_size(target.size(), 1), batch_dims;
  size_t next = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (contains(inserted, d) || contains(batching, d)) continue;
    int64_t own = window_dims[next++];
    auto at = static_cast<size_t>(d);
    window_size[at] = update_shape.dimension(own);
    window.push_back({window_size[at], target[at], update[static_cast<size_t>(own)]});
  }
  for (int64_t d = 0; d < update_shape.rank(); ++d) {
    if (!contains(window_dims, d)) batch_dims.push_back(d);
  }

  std::vector<llvm::Value*> batch;
  auto sum = [&](llvm::Value* x, llvm::Value* n, int64_t stride) {
    return plus(uniform(x), times(uniform(n), stride)).base;
  };
  // Combines the elements of loops `level` and deeper, from offset `at` of the result and `own` of
  // the updates.
  auto walk = [&](auto& self, size_t level, llvm::Value* at, llvm::Value* own) -> void {
    bool is_last = level + 1 >= window.size();
    auto combine = [&](const Lane& into, const Lane& of) {
      ElementType type = shape.element_type();
      llvm::Value* x = load_at(pointer(to), type, into);
      llvm::Value* y = load_at(pointer(updates), type, of);
      store_at(to, type, into, apply(*i->computation(AttributeKey::ToApply), {x, y})[0]);
    };
    if (window.empty()) return combine(uniform(at), uniform(own));
    const Loop& l = window[level];
    if (is_last && l.target == 1 && l.update == 1 && l.size > 1) {
      lanes = natural_lanes(shape.element_type(), l.size);
      along_lanes(l.size, 1, [&](llvm::Value* n, int) {
        combine({sum(at, n, 1), 1, nullptr}, {sum(own, n, 1), 1, nullptr});
      });
      lanes = 1;
      return;
    }
    loop(i64(0), i64(l.size), 1, [&](llvm::Value* n) {
      llvm::Value *into = sum(at, n, l.target), *of = sum(own, n, l.update);
      if (is_last) return combine(uniform(into), uniform(of));
      self(self, level + 1, into, of);
    });
  };
  auto each = [&] {
    // The coordinates of this batch in the indices, without the dimension of the index vectors.
    std::vector<llvm::Value*> place(index_stride.size(), i64(0));
    size_t own_dim = 0;
    for (int64_t d = 0; d < index_shape.rank(); ++d) {
      if (d != vector_dim) place[static_cast<size_t>(d)] = batch[own_dim++];
    }
    llvm::Value *vector = i64(0), *own = i64(0), *at = i64(0), *inside = b.getTrue();
    for (size_t d = 0; d < place.size(); ++d) vector = sum(vector, place[d], index_stride[d]);
    for (size_t n = 0; n < batch_dims.size(); ++n) {
      own = sum(own, batch[n], update[static_cast<size_t>(batch_dims[n])]);
    }
    bool is_signed = element_kind(index_shape.element_type()) == ElementKind::Signed;
    for (size_t k = 0; k < map.size(); ++k) {
      int64_t step =
          vector_dim < index_shape.rank() ? index_stride[static_cast<size_t>(vector_dim)] : 1;
      llvm::Value* start = load_at(pointer(indices), index_shape.element_type(),
                                   uniform(sum(vector, i64(static_cast<int64_t>(k)), step)));
      start = is_signed ? b.CreateSExt(start, b.getInt64Ty()) : b.CreateZExt(start, b.getInt64Ty());
      auto d = static_cast<size_t>(map[k]);
      int64_t most = shape.dimension(map[k]) - window_size[d];
      inside = b.CreateAnd(inside, b.CreateICmpSGE(start, i64(0)));
      inside = b.CreateAnd(inside, b.CreateICmpSLE(start, i64(most)));
      at = sum(at, start, target[d]);
    }
    for (size_t n = 0; n < batching.size(); ++n) {
      at = sum(at, place[static_cast<size_t>(index_batching[n])],
               target[static_cast<size_t>(batching[n])]);
    }
    // A loop of one step if the window is inside, of none otherwise.
    loop(i64(0), b.CreateZExt(inside, b.getInt64Ty()), 1,
         [&](llvm::Value*) { walk(walk, 0, at, own); });
  };
  auto nest = [&](auto& self, size_t level) -> void {
    if (level == batch_dims.size()) return each();
    loop(i64(0), i64(update_shape.dimension(batch_dims[level])), 1, [&](llvm::Value* n) {
      batch.push_back(n);
      self(self, level + 1);
      batch.pop_back();
    });
  };
  begin_scope();
  nest(nest, 0);
  end_scope();
}

}  // namespace lamella::hlo::compiler
