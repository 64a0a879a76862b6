// Control flow, memory and calls of a region; its loops are in units.cpp.
#include "lamella/graph/compiler/program.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstring>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/units.h"
#include "lamella/graph/execute/attention_call.h"

namespace lamella::hlo::compiler {
namespace {

// Temporary memory: the first free bytes that are enough.
class Memory {
 public:
  int64_t take(int64_t bytes) {
    bytes = std::max<int64_t>(64, (bytes + 63) / 64 * 64);
    int64_t at = 0;
    for (auto [first, size] : taken_) {
      if (first - at >= bytes) break;
      at = first + size;
    }
    taken_.emplace(at, bytes);
    most_ = std::max(most_, at + bytes);
    return at;
  }
  void give_back(int64_t at) { taken_.erase(at); }
  int64_t most() const { return most_; }

 private:
  std::map<int64_t, int64_t> taken_;
  int64_t most_ = 0;
};

class Program {
 public:
  Program(llvm::Module& module, int vector_bytes) : e_(module, vector_bytes) {}

  MachineCode emit(const std::string& name, const Region& region) {
    MachineCode code;
    int64_t buffers = 0;
    auto take_buffers = [&](const Instruction* i) {
      std::vector<Place> places;
      for (size_t n = leaf_count(*i->shape); n > 0; --n) {
        places.push_back({Place::Buffer, buffers++, nullptr});
      }
      return places;
    };
    for (const Instruction* input : region.inputs) e_.places[input] = take_buffers(input);
    first_output_ = buffers;
    std::vector<Wanted> wanted;
    for (const Instruction* output : region.outputs) {
      wanted.push_back({output, take_buffers(output)});
    }
    e_.temporary_buffer = buffers;

    llvm::Type* pointer = e_.b.getPtrTy();
    auto* type = llvm::FunctionType::get(e_.b.getInt32Ty(), {pointer}, false);
    Body body;
    body.function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, e_.module);
    body.buffers = body.function->getArg(0);
    e_.body = e_.main_body = &body;
    e_.take_memory = [this](int64_t bytes) { return memory_.take(bytes); };
    e_.b.SetInsertPoint(llvm::BasicBlock::Create(e_.context, "entry", body.function));
    auto* begin = llvm::BasicBlock::Create(e_.context, "begin", body.function);
    e_.b.CreateBr(begin);
    e_.b.SetInsertPoint(begin);
    emit_computation(region.instructions, wanted);
    e_.b.CreateRet(e_.b.getInt32(0));
    code.temporary_bytes = memory_.most();
    for (auto [output, input] : shared_) {
      code.may_share.emplace_back(static_cast<uint32_t>(output - first_output_),
                                  static_cast<uint32_t>(input));
    }
    code.notes = std::move(notes_);
    return code;
  }

 private:
  // Arrays up to this size lie on the stack.
  static constexpr int64_t kSmallBytes = 512;

  Place temporary(const Shape& shape) {
    if (shape.bytes() <= kSmallBytes) {
      Place small = e_.stack_array(shape.bytes());
      if (small.kind != Place::None) return small;
    }
    return {Place::Temporary, memory_.take(shape.bytes()), nullptr};
  }
  std::vector<Place> temporaries(const Shape& shape) {
    std::vector<const Shape*> leaves;
    append_leaves(shape, &leaves);
    std::vector<Place> places;
    for (const Shape* leaf : leaves) places.push_back(temporary(*leaf));
    return places;
  }
  void give_back(const std::vector<Place>& places) {
    for (const Place& place : places) {
      if (place.kind == Place::Temporary) memory_.give_back(place.at);
    }
  }

  void copy(const Place& to, const Place& from, int64_t bytes) {
    if (to == from || bytes == 0) return;
    llvm::Align alignment(16);
    if (bytes < 16) alignment = llvm::Align(1);
    e_.b.CreateMemCpy(e_.pointer(to), alignment, e_.pointer(from), alignment,
                      static_cast<uint64_t>(bytes));
  }

  // Returns from the function where the condition, an i32, is not 0.
  void return_if(llvm::Value* failed) {
    auto* leave = llvm::BasicBlock::Create(e_.context, "leave", e_.body->function);
    auto* go_on = llvm::BasicBlock::Create(e_.context, "on", e_.body->function);
    e_.b.CreateCondBr(e_.b.CreateICmpNE(failed, e_.b.getInt32(0)), leave, go_on);
    e_.b.SetInsertPoint(leave);
    e_.b.CreateRet(e_.b.getInt32(1));
    e_.b.SetInsertPoint(go_on);
  }

  // Instructions of one computation, whose operands outside have places. The values that are
  // wanted are afterwards where they are wanted.
  void emit_computation(std::span<const Instruction* const> instructions,
                        const std::vector<Wanted>& wanted) {
    for (const Instruction* i : instructions) {
      if (Emitter::is_array_constant(i)) {
        e_.place_constant(i);
      } else {
        e_.places.erase(i);
      }
    }
    e_.forget_cuts();
    UnitPlan plan(e_, instructions, wanted);
    std::vector<std::pair<Place, std::pair<Place, int64_t>>> copies;

    // Where a value is wanted it is made there, unless it is wanted twice, or its memory is read
    // after it would be written.
    std::unordered_map<const Instruction*, std::vector<Place>> destination;
    for (const Wanted& one : wanted) plan.place_wanted(one, &destination);
    place_starts(plan, &destination);
    std::vector<std::vector<Place>> ends(plan.units.size() + 1);
    for (size_t u = 0; u < plan.units.size(); ++u) {
      Unit& unit = plan.units[u];
      for (Member& member : unit.members) {
        const Instruction* i = member.instruction;
        if (!member.is_stored) continue;
        std::vector<Place> places = destination[i];
        std::vector<const Shape*> leaves;
        append_leaves(*i->shape, &leaves);
        places.resize(leaves.size());
        for (size_t l = 0; l < places.size(); ++l) {
          if (i->opcode == Opcode::While) {
            if (plan.is_invariant(i, l)) {
              places[l] = e_.places_of(i->operands[0])[l];
              continue;
            }
            // The state of a loop is rather in registers than where it is wanted.
            if (leaves[l]->bytes() <= kSmallBytes) places[l] = {};
          }
          bool usable = places[l].kind != Place::None && !plan.is_read_after(places[l], u, i);
          if (usable) continue;
          std::vector<Place>& now = ends[u];
          Place start = i->opcode == Opcode::While && plan.maker_of_start(i, l, u).first != nullptr
                            ? e_.places_of(i->operands[0])[l]
                            : Place();
          auto ending = std::find(now.begin(), now.end(), start);
          if (start.kind == Place::Temporary && ending != now.end()) {
            now.erase(ending);
            places[l] = start;
          } else {
            places[l] = temporary(*leaves[l]);
          }
          ends[plan.last_use(i, u)].push_back(places[l]);
        }
        e_.places[i] = places;
      }
      emit_unit(plan, unit);
      give_back(ends[u]);
    }
    // What is not there yet. Memory that is read by another copy is saved first.
    for (const Wanted& one : wanted) {
      std::vector<Place> from = e_.places_of(one.instruction);
      std::vector<const Shape*> leaves;
      append_leaves(*one.instruction->shape, &leaves);
      for (size_t l = 0; l < leaves.size(); ++l) {
        if (from[l] == one.places[l]) continue;
        copies.push_back({one.places[l], {from[l], leaves[l]->bytes()}});
      }
    }
    std::vector<Place> saved;
    for (size_t c = 0; c < copies.size(); ++c) {
      bool is_written_before = false;
      for (size_t other = 0; other < c; ++other) {
        is_written_before = is_written_before || copies[other].first == copies[c].second.first;
      }
      if (!is_written_before) continue;
      Place place{Place::Temporary, memory_.take(copies[c].second.second), nullptr};
      copy(place, copies[c].second.first, copies[c].second.second);
      copies[c].second.first = place;
      saved.push_back(place);
    }
    for (const auto& [to, from] : copies) copy(to, from.first, from.second);
    give_back(ends.back());
    give_back(saved);
    for (auto [output, input] : plan.sharing(first_output_)) shared_.emplace_back(output, input);
  }

  // What a loop begins with is made where the loop's state will be.
  void place_starts(const UnitPlan& plan,
                    std::unordered_map<const Instruction*, std::vector<Place>>* destination) const {
    for (size_t u = plan.units.size(); u-- > 0;) {
      const Instruction* i = plan.units[u].members[0].instruction;
      auto found = destination->find(i);
      if (i->opcode != Opcode::While || found == destination->end()) continue;
      std::vector<Place> places = found->second;
      std::vector<const Shape*> leaves;
      append_leaves(*i->shape, &leaves);
      for (size_t l = 0; l < places.size(); ++l) {
        if (places[l].kind == Place::None || leaves[l]->bytes() <= kSmallBytes) continue;
        auto [maker, leaf] = plan.maker_of_start(i, l, u);
        if (maker == nullptr) continue;
        std::vector<Place>& theirs = (*destination)[maker];
        theirs.resize(leaf_count(*maker->shape));
        if (theirs[leaf].kind == Place::None) theirs[leaf] = places[l];
      }
    }
  }

  void emit_unit(UnitPlan& plan, Unit& unit) {
    note(unit);
    ++depth_;
    e_.begin_scope();
    emit_kind(plan, unit);
    e_.end_scope();
    --depth_;
  }
  // What the unit does, for people.
  void note(const Unit& unit) {
    std::string text(2 * static_cast<size_t>(depth_), ' ');
    if (unit.kind == Unit::Loops) {
      text += unit.rows >= 0 ? "rows over [" : "loop over [";
      for (size_t d = 0; d < unit.sizes.size(); ++d) text += str(d == 0 ? "" : ",", unit.sizes[d]);
      text += "]:";
    } else if (unit.members[0].instruction->opcode == Opcode::Add) {
      text += "dot, from a row on:";
    } else {
      text += str(opcode_name(unit.members[0].instruction->opcode), ":");
    }
    for (const Member& member : unit.members) {
      text += str(" ", member.instruction->name, member.is_stored ? "" : " (in registers)");
    }
    notes_.push_back(std::move(text));
  }
  void emit_kind(UnitPlan& plan, Unit& unit) {
    switch (unit.kind) {
      case Unit::Loops:
        plan.emit_loops(unit);
        return;
      case Unit::Pieces:
        plan.emit_pieces(unit);
        return;
      case Unit::Other:
        break;
    }
    const Instruction* i = unit.members[0].instruction;
    if (auto sum = plan.sums.find(i); sum != plan.sums.end()) {
      return emit_dot(plan, sum->second.dot, e_.places.at(i)[0], sum->second.row);
    }
    switch (i->opcode) {
      case Opcode::Dot:
        return emit_dot(plan, i, e_.places.at(i)[0], nullptr);
      case Opcode::CustomCall:
        return emit_attention(plan, i);
      case Opcode::Scatter:
        return e_.scatter(i);
      case Opcode::Sort:
        return return_if(e_.sorted(i));
      case Opcode::While:
        return emit_while(i);
      case Opcode::Conditional:
        return emit_conditional(i);
      case Opcode::Call:
      case Opcode::Fusion: {
        AttributeKey key =
            i->has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls;
        std::vector<std::vector<Place>> arguments;
        for (const Instruction* operand : i->operands) {
          arguments.push_back(e_.places_of(operand));
        }
        std::vector<Place> to = e_.places.at(i);
        call(*i->computation(key), arguments, to);
        return;
      }
      default:
        LAMELLA_INTERNAL_ASSERT(false, "compiler: expected a unit, got ", opcode_name(i->opcode));
    }
  }

  void call(const Computation& computation, const std::vector<std::vector<Place>>& arguments,
            const std::vector<Place>& results) {
    std::vector<const Instruction*> instructions;
    for (const Instruction* i : computation.instructions) {
      if (i->opcode == Opcode::Parameter) {
        e_.places[i] = arguments[static_cast<size_t>(i->parameter_number)];
      } else {
        instructions.push_back(i);
      }
    }
    emit_computation(instructions, {{computation.root, results}});
  }

  // Whether a computation takes less than some microseconds.
  static bool is_short(const Computation& computation) {
    constexpr int64_t kMostElements = 4096;
    int64_t elements = 0;
    for (const Instruction* i : computation.instructions) {
      switch (i->opcode) {
        case Opcode::Dot:
        case Opcode::While:
        case Opcode::Reduce:
        case Opcode::Call:
        case Opcode::Fusion:
        case Opcode::Conditional:
          return false;
        case Opcode::Parameter:
        case Opcode::GetTupleElement:
        case Opcode::Tuple:
          break;
        case Opcode::DynamicUpdateSlice:
          elements += i->operand_shape(1).elements();
          break;
        default:
          elements += i->shape->elements();
      }
    }
    return elements <= kMostElements;
  }
  // Asks once in so many steps, a power of two, as a call takes everything out of registers.
  void ask_for_interrupts(int64_t each, llvm::Value* steps) {
    llvm::BasicBlock* ask = llvm::BasicBlock::Create(e_.context, "ask", e_.body->function);
    auto* go_on = llvm::BasicBlock::Create(e_.context, "on", e_.body->function);
    llvm::Value* count = e_.b.CreateAdd(e_.b.CreateLoad(e_.b.getInt64Ty(), steps), e_.i64(1));
    e_.b.CreateStore(count, steps);
    llvm::Value* rest = e_.b.CreateAnd(count, e_.i64(each - 1));
    llvm::MDBuilder weights(e_.context);
    e_.b.CreateCondBr(e_.b.CreateICmpEQ(rest, e_.i64(0)), ask, go_on,
                      each > 1 ? weights.createBranchWeights(1, 1000) : nullptr);
    e_.b.SetInsertPoint(ask);
    llvm::FunctionCallee interrupted =
        e_.runtime("lamella_interrupted", e_.b.getInt32Ty(), {e_.b.getInt64Ty()});
    return_if(e_.b.CreateCall(interrupted, {e_.i64(8 * each)}));
    e_.b.CreateBr(go_on);
    e_.b.SetInsertPoint(go_on);
  }

  void emit_while(const Instruction* i) {
    std::vector<Place> state = e_.places.at(i), start = e_.places_of(i->operands[0]);
    std::vector<const Shape*> leaves;
    append_leaves(*i->shape, &leaves);
    for (size_t l = 0; l < state.size(); ++l) copy(state[l], start[l], leaves[l]->bytes());
    const Computation& condition = *i->computation(AttributeKey::Condition);
    std::vector<Place> answer = temporaries(*condition.root->shape);
    auto block = [&](const char* name) {
      return llvm::BasicBlock::Create(e_.context, name, e_.body->function);
    };
    llvm::BasicBlock *head = block("while"), *inside = block("body"), *after = block("done");
    llvm::Value* steps = e_.variable(e_.b.getInt64Ty());
    e_.b.CreateStore(e_.i64(0), steps);
    e_.b.CreateBr(head);
    e_.b.SetInsertPoint(head);
    call(condition, {state}, answer);
    llvm::Value* yes = e_.load(answer[0], *condition.root->shape, {});
    e_.b.CreateCondBr(yes, inside, after);
    e_.b.SetInsertPoint(inside);
    const Computation& computation = *i->computation(AttributeKey::Body);
    call(computation, {state}, state);
    ask_for_interrupts(is_short(computation) ? 256 : 1, steps);
    e_.b.CreateBr(head);
    e_.b.SetInsertPoint(after);
    give_back(answer);
  }

  void emit_conditional(const Instruction* i) {
    std::vector<const Computation*> branches;
    if (const Attribute* found = i->find(AttributeKey::BranchComputations)) {
      for (const Computation* c : found->computations()) branches.push_back(c);
    } else {
      branches = {i->computation(AttributeKey::TrueComputation),
                  i->computation(AttributeKey::FalseComputation)};
    }
    llvm::Value* which = e_.value(i->operands[0], {});
    // Truth takes the first of two; a number that names no branch takes the last.
    bool is_truth = i->operand_shape(0).element_type() == ElementType::PRED;
    if (is_truth) which = e_.b.CreateSelect(which, e_.b.getInt32(0), e_.b.getInt32(1));
    auto* after = llvm::BasicBlock::Create(e_.context, "chosen", e_.body->function);
    auto* from = e_.b.GetInsertBlock();
    std::vector<llvm::BasicBlock*> blocks;
    std::vector<Place> results = e_.places.at(i);
    for (size_t n = 0; n < branches.size(); ++n) {
      blocks.push_back(llvm::BasicBlock::Create(e_.context, "branch", e_.body->function));
      e_.b.SetInsertPoint(blocks.back());
      e_.begin_scope();
      call(*branches[n], {e_.places_of(i->operands[n + 1])}, results);
      e_.end_scope();
      e_.b.CreateBr(after);
    }
    e_.b.SetInsertPoint(from);
    auto* choice = e_.b.CreateSwitch(which, blocks.back(), static_cast<unsigned>(blocks.size()));
    for (size_t n = 0; n + 1 < blocks.size(); ++n) {
      choice->addCase(e_.b.getInt32(static_cast<uint32_t>(n)), blocks[n]);
    }
    e_.b.SetInsertPoint(after);
  }

  // ---- Products ----

  // One dimension of sizes and strides for several, where they lie so. False: they do not.
  static bool flattened(const Shape& shape, const View& view, std::span<const int64_t> dimensions,
                        int64_t* size, int64_t* stride) {
    *size = 1;
    *stride = 0;
    bool first = true;
    for (size_t n = dimensions.size(); n-- > 0;) {
      int64_t d = dimensions[n], own = view.strides[static_cast<size_t>(d)];
      if (shape.dimension(d) == 1) continue;
      if (first) {
        *stride = own;
        first = false;
      } else if (own != *stride * *size) {
        return false;
      }
      *size *= shape.dimension(d);
    }
    if (first) *stride = 1;
    return true;
  }
  struct Side {
    Shape shape;
    View view;
    Place place;
    std::vector<int64_t> batches;  // dimensions
    int64_t free_size, free, sum_size, sum;
  };
  // An operand as batch, free and summed dimensions; copied in this order where it must be.
  Side side_of(const UnitPlan& plan, const Instruction* operand, std::span<const int64_t> batch,
               std::span<const int64_t> sum, std::vector<Place>* made) {
    Side side{*operand->shape, plan.view(operand), {}, {batch.begin(), batch.end()}, 0, 0, 0, 0};
    std::vector<int64_t> sums(sum.begin(), sum.end()), frees;
    for (int64_t d = 0; d < side.shape.rank(); ++d) {
      bool named = std::find(batch.begin(), batch.end(), d) != batch.end() ||
                   std::find(sums.begin(), sums.end(), d) != sums.end();
      if (!named) frees.push_back(d);
    }
    side.place = *e_.place_of(side.view.base);
    if (flattened(side.shape, side.view, frees, &side.free_size, &side.free) &&
        flattened(side.shape, side.view, sums, &side.sum_size, &side.sum)) {
      return side;
    }
    // A copy with the dimensions in order: batch, free, summed.
    std::vector<int64_t> order = side.batches;
    order.insert(order.end(), frees.begin(), frees.end());
    order.insert(order.end(), sums.begin(), sums.end());
    Side copied = dense(side.shape, order);
    for (size_t d = 0; d < batch.size(); ++d) copied.batches.push_back(static_cast<int64_t>(d));
    for (int64_t d : frees) copied.free_size *= side.shape.dimension(d);
    for (int64_t d : sums) copied.sum_size *= side.shape.dimension(d);
    copied.free = copied.sum_size;
    made->push_back(copied.place);
    emit_copy(copied, side, order);
    return copied;
  }
  // Memory for the dimensions of a shape in an order.
  Side dense(const Shape& shape, const std::vector<int64_t>& order) {
    std::vector<int64_t> sizes;
    for (int64_t d : order) sizes.push_back(shape.dimension(d));
    Side made{Shape::array(shape.element_type(), sizes), {}, {}, {}, 1, 0, 1, 1};
    made.view.strides.assign(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) {
      made.view.strides[d - 1] = made.view.strides[d] * sizes[d];
    }
    made.place = temporary(made.shape);
    return made;
  }
  // Element by element, `order` says which dimension of `from` each dimension of `to` is.
  void emit_copy(const Side& to, const Side& from, const std::vector<int64_t>& order) {
    ElementType type = to.shape.element_type();
    e_.begin_scope();
    auto nest = [&](auto& self, size_t d, llvm::Value* in, llvm::Value* out) -> void {
      if (d == order.size()) {
        llvm::Value* value = e_.load_at(e_.pointer(from.place), type, e_.uniform(in));
        e_.store_at(to.place, type, e_.uniform(out), value);
        return;
      }
      int64_t in_stride = from.view.strides[static_cast<size_t>(order[d])];
      e_.loop(e_.i64(0), e_.i64(to.shape.dimension(static_cast<int64_t>(d))), 1,
              [&](llvm::Value* at) {
                auto next = [&](llvm::Value* sum, int64_t stride) {
                  return e_.b.CreateAdd(sum, e_.b.CreateMul(at, e_.i64(stride)));
                };
                self(self, d + 1, next(in, in_stride), next(out, to.view.strides[d]));
              });
    };
    nest(nest, 0, e_.i64(0), e_.i64(0));
    e_.end_scope();
  }

  // Products wrap, so that unsigned ones are those of signed numbers.
  static ElementType product_type(ElementType type) {
    switch (type) {
      case ElementType::U16:
        return ElementType::S16;
      case ElementType::U32:
        return ElementType::S32;
      case ElementType::U64:
        return ElementType::S64;
      default:
        return type;
    }
  }
  // The sums begin with a row, if there is one.
  void emit_dot(const UnitPlan& plan, const Instruction* i, const Place& to,
                const Instruction* row) {
    if (i->shape->elements() == 0) return;
    std::vector<Place> made;
    Side a = side_of(plan, i->operands[0], i->integers(AttributeKey::LhsBatchDims),
                     i->integers(AttributeKey::LhsContractingDims), &made);
    Side b = side_of(plan, i->operands[1], i->integers(AttributeKey::RhsBatchDims),
                     i->integers(AttributeKey::RhsContractingDims), &made);
    // Batches that are one dimension on both sides are one call, others a loop around it.
    size_t outer = 0;
    int64_t batch = 1, a_batch = 1, b_batch = 1, inner = 0;
    auto are_one = [&](const Side& side, int64_t* stride) {
      return flattened(side.shape, side.view, std::span(side.batches).subspan(outer), &batch,
                       stride);
    };
    while (!are_one(a, &a_batch) || !are_one(b, &b_batch)) ++outer;
    inner = a.free_size * b.free_size * batch;
    llvm::Constant* problem =
        numbers_of({static_cast<int64_t>(*scalar_type_of(product_type(i->shape->element_type()))),
                    batch, a.free_size, b.free_size, a.sum_size, a_batch, a.free, a.sum, b_batch,
                    b.sum, b.free, row != nullptr ? plan.view(row).strides.back() : 0});
    llvm::Type* pointer = e_.b.getPtrTy();
    llvm::FunctionCallee dot = e_.runtime("lamella_dot", e_.b.getInt32Ty(),
                                          {pointer, pointer, pointer, pointer, pointer, pointer});
    llvm::Value* storage = llvm::ConstantPointerNull::get(e_.b.getPtrTy());
    llvm::Value* first = storage;
    if (row != nullptr) first = e_.pointer(*e_.place_of(plan.view(row).base));
    if (b.place.kind == Place::Buffer && b.place.at < first_output_) {
      storage = e_.pointer({Place::Buffer, e_.temporary_buffer + 1 + b.place.at, nullptr});
    }
    auto at = [&](const Place& place, llvm::Value* elements) {
      llvm::Value* bytes = e_.b.CreateMul(
          elements, e_.i64(static_cast<int64_t>(element_bytes(i->shape->element_type()))));
      return e_.b.CreateGEP(e_.b.getInt8Ty(), e_.pointer(place), bytes);
    };
    auto nest = [&](auto& self, size_t d, llvm::Value* in_a, llvm::Value* in_b,
                    llvm::Value* in_c) -> void {
      if (d == outer) {
        return_if(e_.b.CreateCall(
            dot, {problem, at(a.place, in_a), at(b.place, in_b), at(to, in_c), storage, first}));
        return;
      }
      int64_t each = inner;
      for (size_t k = d + 1; k < outer; ++k) each *= a.shape.dimension(a.batches[k]);
      e_.loop(e_.i64(0), e_.i64(a.shape.dimension(a.batches[d])), 1, [&](llvm::Value* n) {
        auto next = [&](llvm::Value* sum, int64_t stride) {
          return e_.b.CreateAdd(sum, e_.b.CreateMul(n, e_.i64(stride)));
        };
        auto stride_of = [&](const Side& side) {
          return side.view.strides[static_cast<size_t>(side.batches[d])];
        };
        self(self, d + 1, next(in_a, stride_of(a)), next(in_b, stride_of(b)), next(in_c, each));
      });
    };
    nest(nest, 0, e_.i64(0), e_.i64(0), e_.i64(0));
    give_back(made);
  }

  // ---- Attention ----

  void emit_attention(const UnitPlan& plan, const Instruction* i) {
    AttentionCall call = *attention_call(*i);
    const Shape &q = i->operand_shape(0), &k = i->operand_shape(1), &v = i->operand_shape(2);
    const std::vector<Place>& to = e_.places.at(i);
    double scale = call.scale;
    int64_t scale_bits = 0;
    std::memcpy(&scale_bits, &scale, sizeof(scale_bits));
    std::vector<int64_t> numbers = {static_cast<int64_t>(*scalar_type_of(q.element_type())),
                                    q.dimension(0),
                                    q.dimension(1),
                                    k.dimension(1),
                                    q.dimension(2),
                                    k.dimension(2),
                                    q.dimension(3),
                                    v.dimension(3),
                                    call.causal ? 1 : 0,
                                    scale_bits};
    std::vector<llvm::Value*> data;
    std::vector<Place> made;
    for (size_t n = 0; n < 3; ++n) {
      View view = plan.view(i->operands[n]);
      Place place = *e_.place_of(view.base);
      const Shape& shape = i->operand_shape(n);
      if (view.strides[3] != 1 && shape.dimension(3) != 1) {
        Side from{shape, view, place, {}, 0, 0, 0, 0};
        Side copied = dense(shape, {0, 1, 2, 3});
        emit_copy(copied, from, {0, 1, 2, 3});
        made.push_back(copied.place);
        view = copied.view;
        place = copied.place;
      }
      numbers.insert(numbers.end(), view.strides.begin(), view.strides.begin() + 3);
      data.push_back(e_.pointer(place));
    }
    int64_t rows = q.dimension(2), width = v.dimension(3), heads = q.dimension(1);
    bool exchanged = false;
    for (const auto& [transposed, of] : plan.exchanged) {
      if (of != i) continue;
      e_.places[transposed] = {to[0]};
      exchanged = true;
    }
    if (exchanged) {
      numbers.insert(numbers.end(), {rows * heads * width, width, heads * width});
    } else {
      numbers.insert(numbers.end(), {rows * heads * width, rows * width, width});
    }
    llvm::Value* none = llvm::ConstantPointerNull::get(e_.b.getPtrTy());
    std::vector<int64_t> mask_strides(8, 0);
    llvm::Value* mask = none;
    if (call.mask >= 0) {
      const Instruction* given = i->operands[static_cast<size_t>(call.mask)];
      View view = plan.view(given);
      mask = e_.pointer(*e_.place_of(view.base));
      int64_t rank = given->shape->rank();
      for (int64_t d = 0; d < rank; ++d) {
        if (given->shape->dimension(d) == 1) continue;
        mask_strides[static_cast<size_t>(4 - rank + d)] = view.strides[static_cast<size_t>(d)];
      }
    }
    numbers.insert(numbers.end(), mask_strides.begin(), mask_strides.end());
    data.insert(data.end(), {mask, none, e_.pointer(to[0]), e_.pointer(to[1])});
    llvm::Type* pointer = e_.b.getPtrTy();
    llvm::Value* table = e_.variable(llvm::ArrayType::get(pointer, data.size()));
    for (size_t n = 0; n < data.size(); ++n) {
      e_.b.CreateStore(data[n], e_.b.CreateConstInBoundsGEP1_64(pointer, table, n));
    }
    llvm::FunctionCallee attention =
        e_.runtime("lamella_attention", e_.b.getInt32Ty(), {pointer, pointer});
    return_if(e_.b.CreateCall(attention, {numbers_of(numbers), table}));
    give_back(made);
  }

  // Numbers among the constants of the code.
  llvm::Constant* numbers_of(const std::vector<int64_t>& numbers) {
    auto* data = llvm::ConstantDataArray::get(e_.context, llvm::ArrayRef<int64_t>(numbers));
    return new llvm::GlobalVariable(e_.module, data->getType(), true,
                                    llvm::GlobalValue::PrivateLinkage, data);
  }

  Emitter e_;
  Memory memory_;
  int depth_ = 0;
  int64_t first_output_ = 0;
  std::vector<std::pair<int64_t, int64_t>> shared_;
  std::vector<std::string> notes_;
};

}  // namespace

MachineCode emit_region(llvm::Module& module, const std::string& name, const Region& region,
                        int vector_bytes) {
  return Program(module, vector_bytes).emit(name, region);
}

}  // namespace lamella::hlo::compiler
