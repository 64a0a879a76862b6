// Emits reductions, windows and prefix sums as loops at the place where their results are read.
//
// Note [Orders of sums]
//   If the index of the result is the same for all lanes and the last dimension is reduced by a
//   single operation, the lanes run along that dimension, several vectors at once, and are combined
//   at the end. Otherwise each lane has a result of its own and takes the elements in order. The
//   order depends on shapes only, so results have the same bits for any number of threads. Small
//   floats are summed in F32.
#include <algorithm>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/compiler/interleaving.h"
#include "lamella/graph/evaluate/reduce_window.h"

namespace lamella::hlo::compiler {

llvm::Value* Emitter::variable(llvm::Type* type) {
  llvm::BasicBlock& entry = body->function->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.getFirstInsertionPt());
  return at.CreateAlloca(type);
}

// Note [Extremes of floats]
//   The maximum of two floats takes several dependent instructions, as NaN propagates and 0 is
//   above -0. Bits of floats are ordered as integers once the lower bits of negative numbers are
//   inverted, and NaN is mapped to the integer that wins. A chain of maxima is then one instruction
//   for each element.
ElementType Emitter::reduction_type(Opcode opcode, ElementType type) {
  bool is_extreme = opcode == Opcode::Maximum || opcode == Opcode::Minimum;
  switch (type) {
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::F32:
      return is_extreme ? ElementType::S32 : ElementType::F32;
    case ElementType::F64:
      return is_extreme ? ElementType::S64 : type;
    default:
      return type;
  }
}
namespace {
// Inverts all bits but the sign of negative numbers. It is its own inverse.
llvm::Value* turned_below_zero(llvm::IRBuilder<>& b, llvm::Value* bits) {
  llvm::Type* word = bits->getType();
  llvm::Value* negative =
      b.CreateAShr(bits, llvm::ConstantInt::get(word, word->getScalarSizeInBits() - 1));
  return b.CreateXor(bits, b.CreateLShr(negative, llvm::ConstantInt::get(word, 1)));
}
}  // namespace
llvm::Value* Emitter::to_reduction(Opcode opcode, ElementType type, llvm::Value* x) {
  ElementType into = reduction_type(opcode, type);
  if (is_floating(into) || !is_floating(type)) return x;
  llvm::Type* word = widened(register_type(into), x);
  llvm::Value* ordered = turned_below_zero(b, b.CreateBitCast(x, word));
  // NaN becomes the integer that wins: the identity of the opposite opcode.
  bool maximum = opcode == Opcode::Maximum;
  llvm::Value* last = reduce_identity(maximum ? Opcode::Minimum : Opcode::Maximum, into);
  if (word->isVectorTy()) last = splat(last);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), last, ordered);
}
llvm::Value* Emitter::from_reduction(Opcode opcode, ElementType type, llvm::Value* x) {
  if (is_floating(reduction_type(opcode, type)) || !is_floating(type)) return x;
  return b.CreateBitCast(turned_below_zero(b, x), widened(register_type(type), x));
}

int Emitter::natural_lanes(ElementType type, int64_t size) const {
  int bytes = std::max(4, type == ElementType::PRED ? 1 : element_bytes(type));
  int most = vector_bytes / bytes, count = 1;
  while (count < most && count < size) count *= 2;
  return count;
}

void Emitter::along_lanes(int64_t size, int unroll,
                          const std::function<void(llvm::Value* at, int part)>& each,
                          bool straight) {
  int64_t step = lanes, whole = size - size % step;
  int64_t many = unroll > 1 ? size - size % (step * unroll) : 0;
  if (straight) {
    for (int64_t at = 0; at < whole; at += step) {
      each(i64(at), at < many ? static_cast<int>(at / step % unroll) : 0);
    }
  } else if (many > 0) {
    loop(i64(0), i64(many), step * unroll, [&](llvm::Value* at) {
      Interleaving parts(b);
      for (int u = 0; u < unroll; ++u) {
        parts.next();
        each(u == 0 ? at : b.CreateAdd(at, i64(u * step), "", false, true), u);
      }
      parts.finish();
    });
  }
  if (straight) {
    // All whole vectors are done.
  } else if (whole - many > 8 * step) {
    loop(i64(many), i64(whole), step, [&](llvm::Value* at) { each(at, 0); });
  } else {
    for (int64_t at = many; at < whole; at += step) {
      begin_scope();
      each(i64(at), 0);
      end_scope();
    }
  }
  if (whole == size) return;
  llvm::SmallVector<llvm::Constant*, 64> counts;
  for (int64_t l = 0; l < step; ++l) counts.push_back(b.getInt1(whole + l < size));
  llvm::Value* before = mask;
  mask = llvm::ConstantVector::get(counts);
  if (!straight) begin_scope();
  each(i64(whole), 0);
  if (!straight) end_scope();
  mask = before;
}

llvm::Value* Emitter::reduction(const Instruction* i, size_t which, const Index& index) {
  size_t count = i->operands.size() / 2;
  const Computation& computation = *i->computation(AttributeKey::ToApply);
  const Shape& shape = i->operand_shape(0);
  Extent from(shape);
  auto reduced = i->integers(AttributeKey::Dimensions);
  auto is_reduced = [&](int position) {
    int d = from.dimensions[static_cast<size_t>(position)];
    return std::find(reduced.begin(), reduced.end(), d) != reduced.end();
  };
  Cuts cut(static_cast<size_t>(from.rank()) + 1, false);
  for (size_t n = 0; n < count; ++n) {
    Cuts one = cuts(i->operands[n]);
    for (size_t p = 0; p < one.size(); ++p) cut[p] = cut[p] || one[p];
  }
  // Groups of the operand: kept dimensions have the coordinates of the result's groups.
  Index full;
  std::vector<size_t> loops;
  int kept = 0;
  for (int p = 0; p < from.rank();) {
    if (!is_reduced(p)) {
      for (const Group& g : index) {
        if (g.first == kept) full.push_back({p, g.count, g.at});
      }
      kept += full.back().count;
      p += full.back().count;
      continue;
    }
    int end = p + 1;
    while (end < from.rank() && is_reduced(end) && !cut[static_cast<size_t>(end)]) ++end;
    loops.push_back(full.size());
    full.push_back({p, end - p, {}});
    p = end;
  }
  bool uniform_index =
      std::all_of(index.begin(), index.end(), [](const Group& g) { return g.at.is_uniform(); });
  std::optional<Opcode> single = count == 1 ? single_operation(computation) : std::nullopt;
  ElementType type = shape.element_type();
  bool zero = from.elements() == 0;

  if (single && uniform_index && !loops.empty() && loops.back() + 1 == full.size() && !zero) {
    ElementType sum = reduction_type(*single, type);
    int lanes_before = lanes;
    llvm::Value* mask_before = mask;
    const Group& last = full[loops.back()];
    int64_t size = from.product(last.first, last.count);
    lanes = natural_lanes(type, size);
    mask = nullptr;
    int unroll = size >= 4 * lanes ? 4 : 1;
    llvm::Value* identity = reduce_identity(*single, sum);
    if (lanes > 1) identity = splat(identity);
    std::vector<llvm::Value*> sums;
    for (int u = 0; u < unroll; ++u) {
      sums.push_back(variable(identity->getType()));
      b.CreateStore(identity, sums.back());
    }
    auto nest = [&](auto& self, size_t level) -> void {
      Group& g = full[loops[level]];
      int64_t n = from.product(g.first, g.count);
      if (level + 1 < loops.size()) {
        loop(i64(0), i64(n), 1, [&](llvm::Value* at) {
          g.at = uniform(at);
          self(self, level + 1);
        });
        return;
      }
      along_lanes(n, unroll, [&](llvm::Value* at, int part) {
        g.at = {at, lanes > 1 ? 1 : 0, nullptr};
        llvm::Value* x = value(i->operands[0], full);
        if (lanes > 1 && !x->getType()->isVectorTy()) x = splat(x);
        x = to_reduction(*single, type, x);
        if (mask != nullptr) x = b.CreateSelect(mask, x, identity);
        llvm::Value* to = sums[static_cast<size_t>(part)];
        b.CreateStore(combine(*single, sum, b.CreateLoad(x->getType(), to), x), to);
      });
    };
    nest(nest, 0);
    llvm::Value* result = nullptr;
    for (llvm::Value* one : sums) {
      llvm::Value* x = b.CreateLoad(identity->getType(), one);
      result = result == nullptr ? x : combine(*single, sum, result, x);
    }
    result = across_lanes(*single, sum, result);
    lanes = lanes_before;
    mask = mask_before;
    llvm::Value* start = to_reduction(*single, type, value(i->operands[1], {}));
    result = from_reduction(*single, type, combine(*single, sum, start, result));
    return rounded(type, result);
  }

  // Every lane has a result of its own.
  bool vector = !uniform_index;
  std::vector<llvm::Value*> reached;
  ElementType sum = single ? reduction_type(*single, type) : type;
  for (size_t n = 0; n < count; ++n) {
    llvm::Value* start = value(i->operands[count + n], {});
    if (single) start = to_reduction(*single, type, start);
    if (vector) start = splat(start);
    reached.push_back(variable(start->getType()));
    b.CreateStore(start, reached.back());
  }
  auto step = [&] {
    std::vector<llvm::Value*> arguments;
    for (size_t n = 0; n < 2 * count; ++n) {
      llvm::Value* x = nullptr;
      if (n < count) {
        auto* slot = llvm::cast<llvm::AllocaInst>(reached[n]);
        x = b.CreateLoad(slot->getAllocatedType(), slot);
      } else {
        x = value(i->operands[n - count], full);
        if (vector && !x->getType()->isVectorTy()) x = splat(x);
        if (single) x = to_reduction(*single, type, x);
      }
      arguments.push_back(x);
    }
    std::vector<llvm::Value*> results;
    if (single) {
      results.push_back(combine(*single, sum, arguments[0], arguments[1]));
    } else {
      results = apply(computation, arguments);
    }
    for (size_t n = 0; n < count; ++n) {
      if (vector && !results[n]->getType()->isVectorTy()) results[n] = splat(results[n]);
      b.CreateStore(results[n], reached[n]);
    }
  };
  auto nest = [&](auto& self, size_t level) -> void {
    if (level == loops.size()) return step();
    Group& g = full[loops[level]];
    loop(i64(0), i64(from.product(g.first, g.count)), 1, [&](llvm::Value* at) {
      g.at = uniform(at);
      self(self, level + 1);
    });
  };
  begin_scope();
  if (!zero) nest(nest, 0);
  end_scope();
  llvm::Value* wanted = nullptr;
  for (size_t n = 0; n < count; ++n) {
    auto* slot = llvm::cast<llvm::AllocaInst>(reached[n]);
    llvm::Value* x = b.CreateLoad(slot->getAllocatedType(), slot);
    if (single) x = rounded(type, from_reduction(*single, type, x));
    if (n == which) wanted = x;
    if (n != which) remember(i, n, index, x);
  }
  return wanted;
}

// Combines the elements of each window in row-major order, as the evaluator does. Small windows are
// unrolled.
llvm::Value* Emitter::windowed(const Instruction* i, size_t which, const Index& index) {
  const Computation& computation = *i->computation(AttributeKey::ToApply);
  const size_t count = i->operands.size() / 2;
  const Shape& operand = i->operand_shape(0);
  const Shape& result = i->shape->is_tuple() ? i->shape->tuple_shapes()[0] : *i->shape;
  auto window = i->find(AttributeKey::Window)->window();
  Extent from(operand), to(result);
  bool vector =
      std::any_of(index.begin(), index.end(), [](const Group& g) { return !g.at.is_uniform(); });
  std::vector<llvm::Value*> starts, reached;
  for (size_t n = 0; n < count; ++n) {
    llvm::Value* start = value(i->operands[count + n], {});
    starts.push_back(vector ? splat(start) : start);
    reached.push_back(variable(starts.back()->getType()));
    b.CreateStore(starts.back(), reached.back());
  }
  auto done = [&] {
    for (size_t n = 0; n < count; ++n) {
      if (n != which) remember(i, n, index, b.CreateLoad(starts[n]->getType(), reached[n]));
    }
    return b.CreateLoad(starts[which]->getType(), reached[which]);
  };
  if (operand.elements() == 0) return done();
  std::vector<llvm::Value*> at(window.size(), i64(0));
  auto step = [&] {
    llvm::Value *mask_before = mask, *inside = nullptr;
    Index element;
    begin_scope();
    for (size_t d = 0; d < window.size(); ++d) {
      const WindowDimension& w = window[d];
      auto dimension = static_cast<int64_t>(d);
      Lane place = times(of_dimension(to, index, dimension), w.stride);
      place = shifted(place, -w.padding_low);
      place = plus(place, uniform(b.CreateMul(at[d], i64(w.window_dilation))));
      int64_t size = operand.dimension(dimension);
      int64_t last = (result.dimension(dimension) - 1) * w.stride +
                     (w.size - 1) * w.window_dilation - w.padding_low;
      // Without padding and dilation every coordinate has an element.
      if (w.padding_low > 0 || w.base_dilation > 1 || last >= size) {
        place = spread_place(place, size, w.base_dilation, &inside);
      }
      int q = from.position[d];
      if (q >= 0) element.push_back({q, 1, place});
    }
    std::vector<llvm::Value*> arguments;
    for (size_t n = 0; n < count; ++n) {
      arguments.push_back(b.CreateLoad(starts[n]->getType(), reached[n]));
    }
    for (size_t n = 0; n < count; ++n) {
      llvm::Value* x = value(i->operands[n], element);
      arguments.push_back(vector && !x->getType()->isVectorTy() ? splat(x) : x);
    }
    end_scope();
    mask = mask_before;
    if (vector && inside != nullptr && !inside->getType()->isVectorTy()) inside = splat(inside);
    std::vector<llvm::Value*> after = apply(computation, arguments);
    for (size_t n = 0; n < count; ++n) {
      if (vector && !after[n]->getType()->isVectorTy()) after[n] = splat(after[n]);
      if (inside != nullptr) after[n] = b.CreateSelect(inside, after[n], arguments[n]);
      b.CreateStore(after[n], reached[n]);
    }
  };
  int64_t places = 1;
  for (const WindowDimension& w : window) places *= w.size;
  auto nest = [&](auto& self, size_t d) -> void {
    if (d == window.size()) return step();
    if (places <= 16) {
      for (int64_t k = 0; k < window[d].size; ++k) {
        at[d] = i64(k);
        self(self, d + 1);
      }
      return;
    }
    loop(i64(0), i64(window[d].size), 1, [&](llvm::Value* k) {
      at[d] = k;
      self(self, d + 1);
    });
  };
  nest(nest, 0);
  return done();
}

void Emitter::prefixes(const Instruction* i) {
  const Computation& computation = *i->computation(AttributeKey::ToApply);
  const Prefix prefix = *prefix_of(*i);
  const size_t count = i->operands.size() / 2;
  const Shape& shape = i->operand_shape(0);
  std::vector<Place> from;
  std::vector<ElementType> types;
  for (size_t k = 0; k < count; ++k) {
    from.push_back(*place_of(i->operands[k]));
    types.push_back(i->operand_shape(k).element_type());
  }
  const std::vector<Place> to = places.at(i);
  const int64_t size = shape.dimension(prefix.dimension);
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d < prefix.dimension) outer *= shape.dimension(d);
    if (d > prefix.dimension) inner *= shape.dimension(d);
  }
  begin_scope();
  std::vector<llvm::Value*> start, reached;
  for (size_t k = 0; k < count; ++k) start.push_back(value(i->operands[count + k], {}));
  // Lanes are adjacent along the inner dimensions, each with a running value of its own.
  lanes = count == 1 ? natural_lanes(types[0], inner) : 1;
  for (llvm::Value*& one : start) {
    if (lanes > 1) one = splat(one);
    reached.push_back(variable(one->getType()));
  }
  loop(i64(0), i64(outer), 1, [&](llvm::Value* row) {
    llvm::Value* first = b.CreateMul(row, i64(size * inner), "", false, true);
    along_lanes(inner, 1, [&](llvm::Value* column, int) {
      for (size_t k = 0; k < count; ++k) b.CreateStore(start[k], reached[k]);
      loop(i64(0), i64(size), 1, [&](llvm::Value* n) {
        if (prefix.from_last) n = b.CreateSub(i64(size - 1), n);
        Lane at = plus(uniform(first), times(uniform(n), inner));
        at = plus(at, {column, lanes > 1 ? 1 : 0, nullptr});
        std::vector<llvm::Value*> arguments(2 * count);
        for (size_t k = 0; k < count; ++k) {
          llvm::Value* before = b.CreateLoad(start[k]->getType(), reached[k]);
          llvm::Value* x = load_at(pointer(from[k]), types[k], at);
          arguments[prefix.from_last ? count + k : k] = before;
          arguments[prefix.from_last ? k : count + k] = x;
        }
        std::vector<llvm::Value*> made = apply(computation, arguments);
        for (size_t k = 0; k < count; ++k) {
          if (lanes > 1 && !made[k]->getType()->isVectorTy()) made[k] = splat(made[k]);
          b.CreateStore(made[k], reached[k]);
          store_at(to[k], types[k], at, made[k]);
        }
      });
    });
  });
  lanes = 1;
  end_scope();
}

}  // namespace lamella::hlo::compiler
