// Emitter: indices of lanes, loads and stores, and values that are calculated where they are read.
#include "lamella/graph/compiler/emitter.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <utility>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/global_data.h"

namespace lamella::hlo::compiler {

// ---- Extents ----

Extent::Extent(const Shape& shape) {
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d) == 1) {
      position.push_back(-1);
      continue;
    }
    position.push_back(static_cast<int>(sizes.size()));
    sizes.push_back(shape.dimension(d));
    dimensions.push_back(static_cast<int>(d));
  }
}
int64_t Extent::product(int first, int count) const {
  int64_t n = 1;
  for (int p = first; p < first + count; ++p) n *= sizes[static_cast<size_t>(p)];
  return n;
}
int64_t Extent::elements() const { return product(0, rank()); }
int64_t Extent::stride(int last) const { return product(last + 1, rank() - last - 1); }

// ---- Lanes ----

Emitter::Emitter(llvm::Module& of, int bytes, bool device)
    : context(of.getContext()),
      module(of),
      b(of.getContext()),
      vector_bytes(bytes),
      on_device(device) {}

llvm::Value* Emitter::to_lanes(const Lane& lane) {
  if (lane.lanes != nullptr) return lane.lanes;
  if (lanes == 1 && lane.stride == 0) return lane.base;
  llvm::SmallVector<llvm::Constant*, 64> steps;
  for (int l = 0; l < lanes; ++l) {
    steps.push_back(b.getInt64(static_cast<uint64_t>(lane.stride * l)));
  }
  return b.CreateAdd(splat(lane.base), llvm::ConstantVector::get(steps));
}
Lane Emitter::plus(const Lane& x, const Lane& y) {
  if (x.lanes != nullptr || y.lanes != nullptr) {
    llvm::Value *left = to_lanes(x), *right = to_lanes(y);
    even_out({&left, &right});
    return {nullptr, 0, b.CreateAdd(left, right)};
  }
  auto zero = [](llvm::Value* v) {
    auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
    return c != nullptr && c->isZero();
  };
  llvm::Value* base = zero(x.base)   ? y.base
                      : zero(y.base) ? x.base
                                     : b.CreateAdd(x.base, y.base, "", false, true);
  return {base, x.stride + y.stride, nullptr};
}
Lane Emitter::times(const Lane& x, int64_t factor) {
  if (factor == 1) return x;
  if (x.lanes != nullptr) {
    return {nullptr, 0, b.CreateMul(x.lanes, splat(i64(factor)))};
  }
  return {b.CreateMul(x.base, i64(factor), "", false, true), x.stride * factor, nullptr};
}

Lane Emitter::linear(const Extent& extent, const Index& index) {
  Lane sum = uniform(i64(0));
  for (const Group& g : index) {
    sum = plus(sum, times(g.at, extent.stride(g.first + g.count - 1)));
  }
  return sum;
}
Index Emitter::split(const Extent& extent, const Cuts& cuts, const Lane& linear_index) {
  Index index;
  for (int p = 0; p < extent.rank();) {
    int end = p + 1;
    while (end < extent.rank() && !cuts[static_cast<size_t>(end)]) ++end;
    index.push_back({p, end - p, {}});
    p = end;
  }
  for (size_t g = 0; g < index.size(); ++g) {
    int last = index[g].first + index[g].count - 1;
    int64_t stride = extent.stride(last), size = extent.product(index[g].first, index[g].count);
    if (index.size() == 1) {
      index[g].at = linear_index;
      break;
    }
    bool uniform_index = linear_index.is_uniform();
    llvm::Value* at = uniform_index ? linear_index.base : to_lanes(linear_index);
    auto number = [&](int64_t n) -> llvm::Value* {
      return at->getType()->isVectorTy() ? splat(i64(n)) : i64(n);
    };
    if (stride != 1) at = b.CreateUDiv(at, number(stride));
    if (g != 0) at = b.CreateURem(at, number(size));
    index[g].at = uniform_index ? uniform(at) : Lane{nullptr, 0, at};
  }
  return index;
}
Index Emitter::in_groups(const Extent& extent, Index groups, llvm::Value* first) {
  llvm::SmallVector<llvm::Constant*, 64> steps;
  for (int l = 0; l < lanes; ++l) steps.push_back(b.getInt32(static_cast<uint32_t>(l)));
  llvm::Value* start = b.CreateTrunc(first, b.getInt32Ty());
  if (lanes > 1) start = b.CreateAdd(splat(start), llvm::ConstantVector::get(steps));
  for (Group& g : groups) {
    int64_t stride = extent.stride(g.first + g.count - 1), size = extent.product(g.first, g.count);
    auto number = [&](int64_t n) {
      return llvm::ConstantInt::get(start->getType(), static_cast<uint64_t>(n));
    };
    llvm::Value* at = start;
    if (stride != 1) at = b.CreateUDiv(at, number(stride));
    if (g.first != 0) at = b.CreateURem(at, number(size));
    llvm::Value* wide = b.CreateZExt(at, widened(b.getInt64Ty(), at));
    g.at = lanes > 1 ? Lane{nullptr, 0, wide} : uniform(wide);
  }
  return groups;
}
// The lanes along a dimension, which must be a group of its own or of size 1.
Lane Emitter::of_dimension(const Extent& extent, const Index& index, int64_t dimension) {
  int position = extent.position[static_cast<size_t>(dimension)];
  if (position < 0) return uniform(i64(0));
  for (const Group& g : index) {
    if (g.first <= position && position < g.first + g.count) {
      LAMELLA_INTERNAL_ASSERT(g.count == 1, "compiler: expected a group of 1 dimension");
      return g.at;
    }
  }
  LAMELLA_INTERNAL_ASSERT(false, "compiler: expected an index of every dimension");
}

// ---- Remembered values ----

Emitter::Key Emitter::key_of(const Instruction* i, const Index& index) {
  Key key{i};
  for (const Group& g : index) {
    key.push_back(reinterpret_cast<const void*>(static_cast<intptr_t>(g.first * 64 + g.count)));
    key.push_back(g.at.base);
    key.push_back(reinterpret_cast<const void*>(g.at.stride));
    key.push_back(g.at.lanes);
  }
  return key;
}
void Emitter::remember(const Instruction* i, size_t which, const Index& index, llvm::Value* value) {
  Key key = key_of(i, index);
  key.push_back(reinterpret_cast<const void*>(which));
  auto [at, added] = memory_.emplace(std::move(key), value);
  if (added) remembered_.push_back(at);
}
llvm::Value* Emitter::recall(const Instruction* i, size_t which, const Index& index) const {
  Key key = key_of(i, index);
  key.push_back(reinterpret_cast<const void*>(which));
  auto found = memory_.find(key);
  return found == memory_.end() ? nullptr : found->second;
}
void Emitter::end_scope() {
  for (size_t n = scopes_.back(); n < remembered_.size(); ++n) memory_.erase(remembered_[n]);
  remembered_.resize(scopes_.back());
  scopes_.pop_back();
}

// ---- Memory ----

size_t leaf_count(const Shape& shape) {
  if (!shape.is_tuple()) return shape.is_array() ? 1 : 0;
  size_t count = 0;
  for (const Shape& element : shape.tuple_shapes()) count += leaf_count(element);
  return count;
}

const Instruction* Emitter::start_of(const Instruction* i) const {
  if (i->opcode != Opcode::GetTupleElement || i->operands[0]->opcode != Opcode::While ||
      places.count(i->operands[0]) != 0 || places.count(i) != 0) {
    return nullptr;  // the loop's code is emitted already, or its result comes from outside
  }
  const Instruction* start = i->operands[0]->operands[0];
  if (start->opcode != Opcode::Tuple) return nullptr;
  return start->operands[static_cast<size_t>(i->integer(AttributeKey::Index))];
}
std::vector<Place> Emitter::places_of(const Instruction* i) const {
  auto found = places.find(i);
  if (found != places.end()) return found->second;
  switch (i->opcode) {
    case Opcode::Bitcast:
    case Opcode::Copy:
    case Opcode::Reshape:
      return places_of(i->operands[0]);
    case Opcode::GetTupleElement: {
      if (const Instruction* start = start_of(i)) return places_of(start);
      std::vector<Place> all = places_of(i->operands[0]);
      if (all.empty()) return {};
      auto index = static_cast<size_t>(i->integer(AttributeKey::Index));
      const std::vector<Shape>& shapes = i->operand_shape(0).tuple_shapes();
      size_t first = 0;
      for (size_t e = 0; e < index; ++e) first += leaf_count(shapes[e]);
      auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      return {begin, begin + static_cast<std::ptrdiff_t>(leaf_count(shapes[index]))};
    }
    case Opcode::Tuple: {
      std::vector<Place> all;
      for (const Instruction* operand : i->operands) {
        std::vector<Place> some = places_of(operand);
        all.insert(all.end(), some.begin(), some.end());
      }
      return all;
    }
    default:
      return {};
  }
}
std::optional<Place> Emitter::place_of(const Instruction* i) const {
  if (!i->shape->is_array()) return std::nullopt;
  std::vector<Place> all = places_of(i);
  return all.empty() ? std::nullopt : std::optional(all[0]);
}

llvm::Value* Emitter::pointer(const Place& wanted) {
  Place place = wanted;
  if (body->slots != nullptr) {
    auto found = std::ranges::find(*body->slots, wanted);
    place = {Place::Buffer, found - body->slots->begin(), nullptr};
    if (found == body->slots->end()) body->slots->push_back(wanted);
  }
  if (place.kind == Place::Constant) return place.data;
  if (place.kind == Place::Stack && body == main_body) {
    return stack_arrays_[static_cast<size_t>(place.at)].memory;
  }
  auto found = body->pointers.find({place.kind, place.at});
  if (found != body->pointers.end()) return found->second;
  // Loads at the beginning of the function, so that the pointer can be used anywhere in it. Beyond
  // some of them each use has a load of its own, as LLVM takes time by the square of a block's
  // length and of the values that live all through a function.
  constexpr size_t kMaxAtEntry = 128;
  const bool everywhere = body->pointers.size() < kMaxAtEntry;
  llvm::BasicBlock& entry = body->function->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.getFirstInsertionPt());
  if (!everywhere) at.SetInsertPoint(b.GetInsertBlock(), b.GetInsertPoint());
  auto known = [&](llvm::Value* made) {
    if (everywhere) body->pointers[{place.kind, place.at}] = made;
    return made;
  };
  auto slot = [&](int64_t n) {
    llvm::Value* address =
        at.CreateConstInBoundsGEP1_64(at.getPtrTy(), body->buffers, static_cast<uint64_t>(n));
    llvm::LoadInst* loaded = at.CreateLoad(at.getPtrTy(), address);
    loaded->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
    if (on_device) {
      auto* bytes = llvm::ConstantAsMetadata::get(b.getInt64(16));
      loaded->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(context, bytes));
    }
    return loaded;
  };
  if (place.kind == Place::Buffer) return known(slot(place.at));
  int64_t offset = place.at;
  if (place.kind == Place::Stack) {
    StackArray& array = stack_arrays_[static_cast<size_t>(place.at)];
    if (array.slot < 0) {
      array.slot = take_memory(8);
      // In the main function, whichever function is being emitted.
      llvm::IRBuilder<> first(main_body->function->getEntryBlock().getTerminator());
      llvm::Value* table = first.CreateConstInBoundsGEP1_64(
          first.getPtrTy(), main_body->buffers, static_cast<uint64_t>(temporary_buffer));
      llvm::Value* memory = first.CreateLoad(first.getPtrTy(), table);
      first.CreateStore(array.memory,
                        first.CreateConstInBoundsGEP1_64(first.getInt8Ty(), memory,
                                                         static_cast<uint64_t>(array.slot)));
    }
    offset = array.slot;
  }
  llvm::Value* temporary = slot(temporary_buffer);
  llvm::Value* address =
      at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), temporary, static_cast<uint64_t>(offset));
  if (place.kind == Place::Stack) address = at.CreateLoad(at.getPtrTy(), address);
  return known(address);
}

Place Emitter::stack_array(int64_t bytes) {
  constexpr int64_t kMaxStackBytes = 32768;
  int64_t padded = std::max<int64_t>(64, (bytes + 63) / 64 * 64);
  if (stack_bytes_ + padded > kMaxStackBytes) return {};
  stack_bytes_ += padded;
  llvm::BasicBlock& entry = main_body->function->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.getFirstInsertionPt());
  llvm::AllocaInst* memory =
      at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), static_cast<uint64_t>(padded)));
  memory->setAlignment(llvm::Align(64));
  if (padded != bytes) {
    // Loads may read the padding, too.
    at.SetInsertPoint(entry.getTerminator());
    if (body == main_body) at.SetInsertPoint(b.GetInsertBlock(), b.GetInsertPoint());
    llvm::Value* last =
        at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), memory, static_cast<uint64_t>(padded - 64));
    at.CreateMemSet(last, at.getInt8(0), 64, llvm::Align(64));
  }
  stack_arrays_.push_back({bytes, memory});
  return {Place::Stack, static_cast<int64_t>(stack_arrays_.size()) - 1, nullptr};
}

bool Emitter::is_padded(const Place& place, ElementType type, const Lane& at,
                        bool is_written) const {
  auto* first =
      at.lanes == nullptr && at.stride == 1 ? llvm::dyn_cast<llvm::ConstantInt>(at.base) : nullptr;
  auto* counts = mask == nullptr ? nullptr : llvm::dyn_cast<llvm::Constant>(mask);
  if (place.kind != Place::Stack || first == nullptr || counts == nullptr) return false;
  int64_t bytes = stack_array_bytes(place), each = element_bytes(type);
  int64_t begin = first->getSExtValue();
  if (begin < 0 || (begin + lanes) * each > std::max<int64_t>(64, (bytes + 63) / 64 * 64)) {
    return false;
  }
  int64_t taken = 0;
  for (int l = 0; l < lanes; ++l) {
    llvm::Constant* lane = counts->getAggregateElement(static_cast<unsigned>(l));
    taken += lane != nullptr && lane->isOneValue() ? 1 : 0;
  }
  return !is_written || (begin + taken) * each == bytes;
}

llvm::Value* Emitter::load(const Place& place, const Shape& shape, const Index& index) {
  Lane at = linear(Extent(shape), index);
  llvm::Value* before = mask;
  if (is_padded(place, shape.element_type(), at, false)) mask = nullptr;
  llvm::Value* loaded = load_at(pointer(place), shape.element_type(), at);
  mask = before;
  return loaded;
}
llvm::Value* Emitter::load_at(llvm::Value* data, ElementType element, const Lane& at) {
  llvm::Type* type = memory_type(element);
  llvm::Align alignment(static_cast<uint64_t>(element_bytes(element)));
  if (at.is_uniform()) {
    llvm::Value* address = b.CreateInBoundsGEP(type, data, at.base);
    return from_memory(element, b.CreateAlignedLoad(type, address, alignment));
  }
  auto* vector = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
  llvm::Value* nothing = llvm::Constant::getNullValue(vector);
  if (at.lanes == nullptr && (at.stride == 1 || at.stride == -1)) {
    llvm::Value* first = at.base;
    if (at.stride == -1) first = b.CreateSub(first, i64(lanes - 1));
    llvm::Value* address = b.CreateGEP(type, data, first);
    if (at.stride == 1) {
      if (mask == nullptr) {
        return from_memory(element, b.CreateAlignedLoad(vector, address, alignment));
      }
      return from_memory(element, b.CreateMaskedLoad(vector, address, alignment, mask, nothing));
    }
    llvm::SmallVector<int, 64> backwards;
    for (int l = lanes; l-- > 0;) backwards.push_back(l);
    llvm::Value* taken = mask;
    if (mask != nullptr) taken = b.CreateShuffleVector(mask, backwards);
    llvm::Value* loaded =
        mask == nullptr ? static_cast<llvm::Value*>(b.CreateAlignedLoad(vector, address, alignment))
                        : b.CreateMaskedLoad(vector, address, alignment, taken, nothing);
    return from_memory(element, b.CreateShuffleVector(loaded, backwards));
  }
  if (at.lanes == nullptr && at.stride > 1 && at.stride <= 4 && mask == nullptr) {
    return from_memory(element, load_apart(data, vector, alignment, at));
  }
  llvm::Value* addresses = b.CreateGEP(type, data, to_lanes(at));
  return from_memory(element, b.CreateMaskedGather(vector, addresses, alignment, mask, nothing));
}

// Loads elements that are a few elements apart: selects them from `stride` whole vectors, the last
// of which is moved back to end with the last element.
llvm::Value* Emitter::load_apart(llvm::Value* data, llvm::FixedVectorType* vector,
                                 llvm::Align alignment, const Lane& at) {
  llvm::Value* made = nullptr;
  const int64_t last = (lanes - 1) * at.stride;
  for (int64_t part = 0; part < at.stride; ++part) {
    int64_t begin = std::min(part * lanes, last - (lanes - 1));
    llvm::Value* address =
        b.CreateGEP(vector->getElementType(), data, shifted(uniform(at.base), begin).base);
    llvm::Value* loaded = b.CreateAlignedLoad(vector, address, alignment);
    llvm::SmallVector<int, 64> which;
    for (int l = 0; l < lanes; ++l) {
      int64_t from = l * at.stride - begin;
      bool is_here = from >= 0 && from < lanes;
      which.push_back(is_here ? static_cast<int>(made == nullptr ? from : lanes + from) : l);
    }
    made = b.CreateShuffleVector(made == nullptr ? loaded : made, loaded, which);
  }
  return made;
}

void Emitter::store(const Place& place, const Shape& shape, const Index& index,
                    llvm::Value* value) {
  store_at(place, shape.element_type(), linear(Extent(shape), index), value);
}
void Emitter::store_at(const Place& place, ElementType element, const Lane& at,
                       llvm::Value* value) {
  bool stream_before = streams;
  llvm::Value* mask_before = mask;
  streams = streams && place.kind == Place::Buffer;
  if (is_padded(place, element, at, true)) mask = nullptr;
  store_at(pointer(place), element, at, value);
  streams = stream_before;
  mask = mask_before;
}
Lane Emitter::in_row(const Instruction* i, const Index& index, int rows) {
  Extent extent(*i->shape);
  Lane sum = uniform(i64(0));
  for (const Group& g : index) {
    if (g.first >= rows) sum = plus(sum, times(g.at, extent.stride(g.first + g.count - 1)));
  }
  return sum;
}
void Emitter::keep_in_row(const Instruction* i, const Index& index, llvm::Value* value) {
  // Stores whole vectors without a mask: there is room behind the row, and the next vector
  // overwrites the surplus.
  const RowMemory& to = row_memory.at(i);
  llvm::Value* before = std::exchange(mask, nullptr);
  store_at(to.data, i->shape->element_type(), in_row(i, index, to.rows), value);
  mask = before;
}
void Emitter::store_at(llvm::Value* data, ElementType element, const Lane& at, llvm::Value* value) {
  llvm::Type* type = memory_type(element);
  llvm::Align alignment(static_cast<uint64_t>(element_bytes(element)));
  if (at.is_uniform()) {
    b.CreateAlignedStore(to_memory(element, value), b.CreateInBoundsGEP(type, data, at.base),
                         alignment);
    return;
  }
  if (!value->getType()->isVectorTy()) value = splat(value);
  value = to_memory(element, value);
  if (at.lanes == nullptr && at.stride == 1) {
    llvm::Value* address = b.CreateGEP(type, data, at.base);
    bool whole = lanes * element_bytes(element) == vector_bytes;
    if (mask == nullptr && streams && whole) {
      auto* stored =
          b.CreateAlignedStore(value, address, llvm::Align(static_cast<uint64_t>(vector_bytes)));
      stored->setMetadata(llvm::LLVMContext::MD_nontemporal,
                          llvm::MDNode::get(context, llvm::ConstantAsMetadata::get(b.getInt32(1))));
    } else if (mask == nullptr) {
      b.CreateAlignedStore(value, address, alignment);
    } else {
      b.CreateMaskedStore(value, address, alignment, mask);
    }
    return;
  }
  b.CreateMaskedScatter(value, b.CreateGEP(type, data, to_lanes(at)), alignment, mask);
}

llvm::Value* Emitter::constant(const Instruction* i) {
  ElementType element = i->shape->element_type();
  llvm::Type* type = register_type(element);
  if (is_complex(element)) {
    complex<double> z = i->literal->complex_at(0);
    return joined({llvm::ConstantFP::get(b.getFloatTy(), z.real()),
                   llvm::ConstantFP::get(b.getFloatTy(), z.imag())});
  }
  if (is_floating(element)) return llvm::ConstantFP::get(type, i->literal->real_at(0));
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(i->literal->integer_at(0)), true);
}
bool Emitter::is_array_constant(const Instruction* i) {
  return i->opcode == Opcode::Constant && i->shape->is_array() && i->shape->elements() != 1;
}
void Emitter::place_constant(const Instruction* i) {
  if (places.count(i) != 0) return;
  auto* bytes = llvm::ConstantDataArray::getRaw(
      llvm::StringRef(static_cast<const char*>(i->literal->data()), i->literal->bytes()),
      i->literal->bytes(), b.getInt8Ty());
  places[i] = {{Place::Constant, 0, shared_constant(bytes)}};
}

llvm::Value* Emitter::shared_constant(llvm::Constant* constant) {
  llvm::Value*& known = shared_constants_[constant];
  if (known == nullptr) known = global_data(module, constant);
  return known;
}

// ---- Values ----

llvm::Value* Emitter::value(const Instruction* i, const Index& index) {
  // Looks through reshapes and tuples to a value that may have been calculated here already.
  for (;; i = i->operands[0]) {
    bool same =
        i->opcode == Opcode::Reshape || i->opcode == Opcode::Bitcast || i->opcode == Opcode::Copy;
    if (i->opcode == Opcode::GetTupleElement && i->operands[0]->opcode == Opcode::Tuple &&
        places.count(i) == 0 && places.count(i->operands[0]) == 0) {
      i = i->operands[0]->operands[static_cast<size_t>(i->integer(AttributeKey::Index))];
      return value(i, index);
    }
    if (const Instruction* start = start_of(i)) return value(start, index);
    if (!same || places.count(i) != 0) break;
    if (Extent(i->operand_shape(0)).sizes != Extent(*i->shape).sizes) break;
  }
  if (i->opcode == Opcode::Constant && !is_array_constant(i)) return constant(i);
  Key key = key_of(i, index);
  key.push_back(nullptr);
  auto found = memory_.find(key);
  if (found != memory_.end()) return found->second;
  if (i->opcode == Opcode::GetTupleElement) {
    auto which = static_cast<size_t>(i->integer(AttributeKey::Index));
    if (llvm::Value* known = recall(i->operands[0], which, index)) return known;
  }
  auto kept = row_memory.find(i);
  if (kept != row_memory.end()) {
    llvm::Value* before = std::exchange(mask, nullptr);
    llvm::Value* loaded =
        load_at(kept->second.data, i->shape->element_type(), in_row(i, index, kept->second.rows));
    mask = before;
    remember(i, 0, index, loaded);
    return loaded;
  }
  std::optional<Place> place = place_of(i);
  llvm::Value* made = place ? load(*place, *i->shape, index) : emit(i, index);
  remember(i, 0, index, made);
  return made;
}

llvm::Value* Emitter::emit(const Instruction* i, const Index& index) {
  switch (i->opcode) {
    case Opcode::Constant:
      return constant(i);
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Iota:
    case Opcode::Pad:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
      return movement(i, index);
    case Opcode::Copy:
    case Opcode::Bitcast:
      if (i->operand_shape(0).same_dimensions(*i->shape)) return value(i->operands[0], index);
      return movement(i, index);
    case Opcode::Reduce:
      return reduction(i, 0, index);
    case Opcode::ReduceWindow:
      return windowed(i, 0, index);
    case Opcode::GetTupleElement: {
      auto which = static_cast<size_t>(i->integer(AttributeKey::Index));
      if (i->operands[0]->opcode == Opcode::ReduceWindow) {
        return windowed(i->operands[0], which, index);
      }
      return reduction(i->operands[0], which, index);
    }
    default: {
      llvm::SmallVector<llvm::Value*, 4> x;
      for (const Instruction* operand : i->operands) {
        // A scalar operand of select or clamp applies to every element.
        bool scalar = operand->shape->elements() == 1;
        x.push_back(value(operand, scalar ? Index() : index));
      }
      return elementwise(i, x);
    }
  }
}

}  // namespace lamella::hlo::compiler
