// Program: control flow, memory and calls of a region. Its loops are in units.cpp and loops.cpp.
#include "lamella/graph/compiler/program.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <utility>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/frame.h"
#include "lamella/graph/compiler/kernel_calls.h"
#include "lamella/graph/compiler/units.h"

namespace lamella::hlo::compiler {
namespace {

class Program {
 public:
  Program(llvm::Module& module, int vector_bytes, SharedUnits* units)
      : frame_(module, vector_bytes), shared_units_(*units) {}

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
    frame_.first_output = buffers;
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
    e_.b.SetInsertPoint(llvm::BasicBlock::Create(e_.context, "entry", body.function));
    auto* begin = llvm::BasicBlock::Create(e_.context, "begin", body.function);
    e_.b.CreateBr(begin);
    e_.b.SetInsertPoint(begin);
    emit_computation(region.instructions, wanted);
    e_.b.CreateRet(e_.b.getInt32(0));
    code.temporary_bytes = frame_.memory.most();
    for (auto [output, input] : shared_) {
      code.may_share.emplace_back(static_cast<uint32_t>(output - frame_.first_output),
                                  static_cast<uint32_t>(input));
    }
    code.notes = std::move(notes_);
    code.loops = std::move(loops_);
    return code;
  }

 private:
  void copy(const Place& to, const Place& from, int64_t bytes) {
    if (to == from || bytes == 0) return;
    llvm::Align alignment(16);
    if (bytes < 16) alignment = llvm::Align(1);
    e_.b.CreateMemCpy(e_.pointer(to), alignment, e_.pointer(from), alignment,
                      static_cast<uint64_t>(bytes));
  }

  // Emits the instructions of one computation; operands from outside it must have places. Wanted
  // values are in their wanted places afterwards.
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

    // A wanted value is written directly to the place where it is wanted, unless it is wanted in
    // two places, or the memory there is still read after the value would be written.
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
            // Small state of a loop goes on the stack, where it may become registers.
            if (leaves[l]->bytes() <= Frame::kSmallBytes) places[l] = {};
          }
          bool usable = places[l].kind != Place::None && !plan.is_read_after(places[l], u, i);
          if (usable) continue;
          std::vector<Place>& now = ends[u];
          Place start;
          if (i->opcode == Opcode::While) {
            if (plan.maker_of_start(i, l, u).first != nullptr) {
              start = e_.places_of(i->operands[0])[l];
            }
          } else if (leaves.size() == 1) {
            start = plan.read_in_place(u, i, now);
          }
          auto ending = std::find(now.begin(), now.end(), start);
          if (start.kind == Place::Temporary && ending != now.end()) {
            now.erase(ending);
            places[l] = start;
          } else {
            places[l] = frame_.temporary(*leaves[l]);
          }
          ends[plan.last_use(i, u)].push_back(places[l]);
        }
        e_.places[i] = places;
      }
      emit_unit(plan, unit);
      end_long_block();
      frame_.give_back(ends[u]);
    }
    // Copies the values that are not in their wanted places yet. Memory that an earlier copy
    // overwrites is saved first.
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
      Place place{Place::Temporary, frame_.memory.take(copies[c].second.second), nullptr};
      copy(place, copies[c].second.first, copies[c].second.second);
      copies[c].second.first = place;
      saved.push_back(place);
    }
    for (const auto& [to, from] : copies) copy(to, from.first, from.second);
    frame_.give_back(ends.back());
    frame_.give_back(saved);
    for (auto [output, input] : plan.sharing(frame_.first_output))
      shared_.emplace_back(output, input);
  }

  // Lets the initial values of a loop be written to where the loop's state will be.
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
        if (places[l].kind == Place::None || leaves[l]->bytes() <= Frame::kSmallBytes) continue;
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
    if (!emit_shared(plan, unit)) emit_kind(plan, unit);
    e_.end_scope();
    --depth_;
  }
  // Emits a call of the function of the unit's form; false if the unit is to be emitted in place.
  // See Note [Shared units].
  bool emit_shared(UnitPlan& plan, Unit& unit) {
    // A call costs more than a few elements inside of a loop, and where arrays on the stack may
    // become registers.
    constexpr int kMinUnits = 3, kMinShortUnits = 16;
    constexpr int64_t kFewElements = 256;
    std::optional<UnitForm> form = plan.form_of(unit);
    if (!form) return false;
    int64_t elements = unit.kind == Unit::Loops ? 1 : kFewElements;
    for (int64_t size : unit.sizes) elements *= size;
    const bool is_repeated = depth_ > 1, is_short = elements < kFewElements;
    if (is_short && is_repeated && form->on_stack) return false;
    SharedUnit& shared = shared_units_[form->key];
    const int least = is_short && (is_repeated || form->on_stack) ? kMinShortUnits : kMinUnits;
    if (++shared.count < least) return false;
    if (shared.function == nullptr) {
      make_shared(plan, unit, form->places, &shared);
    } else if (!shared.own_places.empty() && shared.made_by != e_.main_body->function) {
      return false;
    }
    std::vector<Place>& places = form->places;
    places.insert(places.end(), shared.own_places.begin(), shared.own_places.end());
    auto* type = llvm::ArrayType::get(e_.b.getPtrTy(), std::max(places.size(), call_slots_));
    if (call_table_ == nullptr) {
      call_table_ = llvm::cast<llvm::AllocaInst>(e_.variable(type));
    } else {
      call_table_->setAllocatedType(type);
    }
    call_slots_ = type->getNumElements();
    for (size_t n = 0; n < places.size(); ++n) {
      e_.b.CreateStore(e_.pointer(places[n]),
                       e_.b.CreateConstInBoundsGEP1_64(e_.b.getPtrTy(), call_table_, n));
    }
    llvm::Value* failed = e_.b.CreateCall(shared.function, {call_table_});
    if (shared.may_fail) frame_.return_if(failed);
    return true;
  }
  void make_shared(UnitPlan& plan, Unit& unit, const std::vector<Place>& places,
                   SharedUnit* shared) {
    std::vector<Place> slots = places;
    Body body, *before = e_.body;
    llvm::BasicBlock* here = e_.b.GetInsertBlock();
    auto* type = llvm::FunctionType::get(e_.b.getInt32Ty(), {e_.b.getPtrTy()}, false);
    body.function =
        llvm::Function::Create(type, llvm::Function::InternalLinkage, "unit", e_.module);
    body.buffers = body.function->getArg(0);
    body.slots = &slots;
    e_.body = &body;
    auto* entry = llvm::BasicBlock::Create(e_.context, "entry", body.function);
    auto* begin = llvm::BasicBlock::Create(e_.context, "begin", body.function);
    llvm::BranchInst::Create(begin, entry);
    e_.b.SetInsertPoint(begin);
    const bool may_fail_before = std::exchange(frame_.may_fail, false);
    emit_kind(plan, unit);
    e_.b.CreateRet(e_.b.getInt32(0));
    e_.body = before;
    e_.b.SetInsertPoint(here);
    shared->function = body.function;
    shared->may_fail = std::exchange(frame_.may_fail, may_fail_before);
    shared->own_places.assign(slots.begin() + static_cast<std::ptrdiff_t>(places.size()),
                              slots.end());
    shared->made_by = e_.main_body->function;
  }
  // Describes the unit for explanations of the compiled program.
  void note(const Unit& unit) {
    std::string text(2 * static_cast<size_t>(depth_), ' ');
    if (unit.kind == Unit::Loops) {
      text += unit.rows >= 0 ? "rows over [" : "loop over [";
      for (size_t d = 0; d < unit.sizes.size(); ++d) text += str(d == 0 ? "" : ",", unit.sizes[d]);
      text += "]:";
    } else if (unit.members[0].instruction->opcode == Opcode::Add) {
      text += "product or convolution that starts with a row:";
    } else {
      text += str(opcode_name(unit.members[0].instruction->opcode), ":");
    }
    for (const Member& member : unit.members) {
      text += str(" ", member.instruction->name, member.is_stored ? "" : " (in registers)");
    }
    notes_.push_back(std::move(text));
    if (depth_ != 0) return;
    std::vector<std::string>& written = loops_.emplace_back();
    for (const Member& member : unit.members) {
      if (member.is_stored) written.emplace_back(member.instruction->name);
    }
  }
  void emit_kind(UnitPlan& plan, Unit& unit) {
    switch (unit.kind) {
      case Unit::Loops:
        plan.emit_loops(unit);
        return;
      case Unit::Pieces:
        plan.emit_pieces(unit, [&] { end_long_block(); });
        return;
      case Unit::Other:
        break;
    }
    const Instruction* i = unit.members[0].instruction;
    if (auto sum = plan.sums.find(i); sum != plan.sums.end()) {
      return KernelCalls(frame_, plan)
          .product_or_convolution(sum->second.product, e_.places.at(i)[0], sum->second.row);
    }
    switch (i->opcode) {
      case Opcode::Convolution:
      case Opcode::Dot:
        return KernelCalls(frame_, plan).product_or_convolution(i, e_.places.at(i)[0], nullptr);
      case Opcode::CustomCall:
        return KernelCalls(frame_, plan).attention(i);
      case Opcode::ReduceWindow:
        return e_.prefixes(i);
      case Opcode::Scatter:
        return e_.scatter(i);
      case Opcode::SelectAndScatter:
        return KernelCalls(frame_, plan).select_and_scatter(i);
      case Opcode::Sort:
        return frame_.return_if(e_.sorted(i));
      case Opcode::Transpose:
        return KernelCalls(frame_, plan).transpose(i);
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

  // True if a computation takes at most a few microseconds.
  static bool is_short(const Computation& computation) {
    constexpr int64_t kMaxElements = 4096;
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
    return elements <= kMaxElements;
  }
  void return_if_interrupted(int64_t operations) {
    llvm::FunctionCallee interrupted =
        e_.runtime("lamella_interrupted", e_.b.getInt32Ty(), {e_.b.getInt64Ty()});
    frame_.return_if(e_.b.CreateCall(interrupted, {e_.i64(operations)}));
  }
  // Begins another basic block after a long one, or after blocks that are long together, as LLVM
  // may unroll short loops into one: it takes time by the square of a block's length.
  void end_long_block() {
    constexpr size_t kMaxBlockLength = 256, kMaxLengthTogether = 1024;
    llvm::BasicBlock* here = e_.b.GetInsertBlock();
    if (long_from_ == nullptr || long_from_->getParent() != here->getParent()) long_from_ = here;
    size_t together = 0;
    for (auto at = long_from_->getIterator(); at != here->getParent()->end(); ++at) {
      together += at->size();
    }
    if (here->size() <= kMaxBlockLength && together <= kMaxLengthTogether) return;
    return_if_interrupted(static_cast<int64_t>(kMaxBlockLength));
    long_from_ = e_.b.GetInsertBlock();
  }
  // Checks for interrupts once in `each` steps, a power of two: a call forces all values out of
  // registers.
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
    return_if_interrupted(8 * each);
    e_.b.CreateBr(go_on);
    e_.b.SetInsertPoint(go_on);
  }

  void emit_while(const Instruction* i) {
    std::vector<Place> state = e_.places.at(i), start = e_.places_of(i->operands[0]);
    std::vector<const Shape*> leaves;
    append_leaves(*i->shape, &leaves);
    for (size_t l = 0; l < state.size(); ++l) copy(state[l], start[l], leaves[l]->bytes());
    const Computation& condition = *i->computation(AttributeKey::Condition);
    std::vector<Place> answer = frame_.temporaries(*condition.root->shape);
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
    frame_.give_back(answer);
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
    // True takes the first of two branches; an index out of range takes the last.
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

  Frame frame_;
  Emitter& e_ = frame_.e;
  SharedUnits& shared_units_;
  llvm::AllocaInst* call_table_ = nullptr;  // of the addresses for calls of shared units
  uint64_t call_slots_ = 0;
  int depth_ = 0;
  llvm::BasicBlock* long_from_ = nullptr;  // the block after the last check of end_long_block()
  std::vector<std::pair<int64_t, int64_t>> shared_;
  std::vector<std::string> notes_;
  std::vector<std::vector<std::string>> loops_;
};

}  // namespace

MachineCode emit_region(llvm::Module& module, const std::string& name, const Region& region,
                        int vector_bytes, SharedUnits* units) {
  return Program(module, vector_bytes, units).emit(name, region);
}

}  // namespace lamella::hlo::compiler
