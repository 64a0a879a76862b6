// Emitter: LLVM's code of one region.
//
// Note [Values, places and indices]
//   An instruction is either written to memory, and then has places, one for each array of its
//   value; or it is calculated where it is read, element by element, for an index. An index says
//   for each dimension of a shape which elements the lanes of a vector stand for. Dimensions of
//   size 1 have no part in it, and neighbours that are always walked together are one group. So
//   moving elements costs nothing: broadcast, transpose, slice, pad, ... only change the index.
//
//   PRED is i1 in registers, F16 and BF16 are floats that were rounded, C64 is an i64 with the real
//   part in its lower half.
#pragma once
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lamella/graph/execute/region.h"
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo::compiler {

// What lane l of a vector stands for along some dimensions: base + stride * l; or lanes[l].
struct Lane {
  llvm::Value* base = nullptr;  // i64
  int64_t stride = 0;
  llvm::Value* lanes = nullptr;  // <W x i64>, instead of the others

  bool is_uniform() const { return lanes == nullptr && stride == 0; }
};
// Neighbouring dimensions of those that are not of size 1, and where the lanes are along them.
struct Group {
  int first;
  int count;
  Lane at;
};
using Index = llvm::SmallVector<Group, 4>;

// The sizes of a shape that are not 1, and which dimensions they belong to.
struct Extent {
  std::vector<int64_t> sizes;
  std::vector<int> dimensions;
  std::vector<int> position;  // of each dimension among them; -1: size 1

  explicit Extent(const Shape& shape);
  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t elements() const;
  // Elements between neighbours along the last dimension of a group.
  int64_t stride(int last) const;
  int64_t product(int first, int count) const;
};

// Where an array lies.
struct Place {
  // Small arrays of temporary memory lie on the stack, where they may become registers.
  enum Kind : uint8_t { None, Buffer, Temporary, Stack, Constant } kind = None;
  int64_t at = 0;  // number of the buffer or stack array, or bytes into the temporary memory
  llvm::Value* data = nullptr;  // of a constant
  bool operator==(const Place&) const = default;
};

// The arrays of a shape, tuples flattened.
size_t leaf_count(const Shape& shape);

// Whether the code may be cut where it is walked along two dimensions: true at p if dimensions
// p - 1 and p (of those that are not 1) are walked on their own.
using Cuts = std::vector<bool>;

// One LLVM function under construction.
struct Body {
  llvm::Function* function = nullptr;
  llvm::Value* buffers = nullptr;  // the table of arrays
  std::map<std::pair<int, int64_t>, llvm::Value*> pointers;
};

class Emitter {
 public:
  Emitter(llvm::Module& module, int vector_bytes);

  // ---- Control of values: which instructions have places. Filled by whoever lays memory out.
  std::unordered_map<const Instruction*, std::vector<Place>> places;

  // The value of an array instruction at the index, a scalar where the index is uniform.
  llvm::Value* value(const Instruction* i, const Index& index);
  // The results of a computation of scalars.
  std::vector<llvm::Value*> apply(const Computation& computation,
                                  const std::vector<llvm::Value*>& arguments);
  // Where walking the instruction's elements must be cut.
  Cuts cuts(const Instruction* i);
  // Whether the instruction has a place, or is another shape of one that has.
  std::optional<Place> place_of(const Instruction* i) const;
  // Where all arrays of a value lie; empty if it has no places.
  std::vector<Place> places_of(const Instruction* i) const;

  // What a loop begins with, for an element of its state that is read before the loop is done: only
  // those that it never changes are. Null for everything else.
  const Instruction* start_of(const Instruction* i) const;

  llvm::Value* load(const Place& place, const Shape& shape, const Index& index);
  void store(const Place& place, const Shape& shape, const Index& index, llvm::Value* value);
  // The same at an element of memory.
  llvm::Value* load_at(llvm::Value* data, ElementType type, const Lane& at);
  llvm::Value* load_apart(llvm::Value* data, llvm::FixedVectorType* vector, llvm::Align alignment,
                          const Lane& at);
  void store_at(llvm::Value* data, ElementType type, const Lane& at, llvm::Value* value);
  void store_at(const Place& place, ElementType type, const Lane& at, llvm::Value* value);
  llvm::Value* pointer(const Place& place);

  // ---- Loops. `body` gets the index of the step; what is emitted inside is forgotten after it.
  template <class F>
  void loop(llvm::Value* begin, llvm::Value* end, int64_t step, F&& body);
  // What a later phase of the same row reads: memory of the function for one row, of which `rows`
  // dimensions are left out.
  struct RowMemory {
    llvm::Value* data;
    int rows;
  };
  std::unordered_map<const Instruction*, RowMemory> row_memory;
  Lane in_row(const Instruction* i, const Index& index, int rows);
  void keep_in_row(const Instruction* i, const Index& index, llvm::Value* value);

  void begin_scope() { scopes_.push_back(remembered_.size()); }
  void end_scope();

  // ---- Types and small pieces.
  llvm::Type* register_type(ElementType type);  // of one lane
  llvm::Type* memory_type(ElementType type);
  llvm::Value* i64(int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); }
  llvm::Value* splat(llvm::Value* v) {
    return b.CreateVectorSplat(static_cast<unsigned>(lanes), v);
  }
  // Makes all of them vectors if one is.
  void even_out(std::initializer_list<llvm::Value**> values);
  Lane uniform(llvm::Value* base) { return {base, 0, nullptr}; }
  llvm::Value* to_lanes(const Lane& lane);
  Lane plus(const Lane& a, const Lane& b);
  Lane times(const Lane& a, int64_t factor);
  Lane shifted(const Lane& a, int64_t by) { return plus(a, uniform(i64(by))); }
  Lane linear(const Extent& extent, const Index& index);
  Index split(const Extent& extent, const Cuts& cuts, const Lane& linear);
  // The groups with the places of lanes that are neighbours from `first` on, in less than 2^31
  // elements.
  Index in_groups(const Extent& extent, Index groups, llvm::Value* first);
  Lane of_dimension(const Extent& extent, const Index& index, int64_t dimension);
  llvm::Value* call_kernel(const char* name, llvm::ArrayRef<llvm::Value*> x);
  // Memory of the code that holds the constant, the same for equal ones.
  llvm::Value* shared_constant(llvm::Constant* constant);
  llvm::FunctionCallee runtime(const char* name, llvm::Type* result,
                               llvm::ArrayRef<llvm::Type*> arguments);
  llvm::Value* reduce_identity(Opcode opcode, ElementType type);
  llvm::Value* combine(Opcode opcode, ElementType type, llvm::Value* x, llvm::Value* y);
  llvm::Value* across_lanes(Opcode opcode, ElementType type, llvm::Value* vector);
  // Result `which` of a reduce.
  llvm::Value* reduction(const Instruction* i, size_t which, const Index& index);
  std::vector<Lane> dynamic_starts(const Instruction* i, size_t first, const Shape& slice);
  // Memory of a function for one value, which becomes a register.
  llvm::Value* variable(llvm::Type* type);
  // What a reduction of a type works in: small floats are summed in F32, and extremes of floats are
  // taken of integers. Operands are brought to that type, results from it.
  static ElementType reduction_type(Opcode opcode, ElementType type);
  llvm::Value* to_reduction(Opcode opcode, ElementType type, llvm::Value* x);
  llvm::Value* from_reduction(Opcode opcode, ElementType type, llvm::Value* x);
  // Lanes of a vector along so many elements.
  int natural_lanes(ElementType type, int64_t size) const;
  // Walks `size` elements `lanes` at a time; the last ones under a mask. `unroll` of them are done
  // in one step, with part 0, 1, ... If `straight`, there is no loop, and what was calculated is
  // remembered afterwards.
  void along_lanes(int64_t size, int unroll,
                   const std::function<void(llvm::Value* at, int part)>& each,
                   bool straight = false);
  // Writes what a reduction reaches after each element.
  void prefixes(const Instruction* i);
  // Scatters into the place of `i`.
  void scatter(const Instruction* i);
  // Sorts into the places of `i`; gives what return_if() asks for.
  llvm::Value* sorted(const Instruction* i);
  // Calculates an instruction that has a place.
  llvm::Value* calculate(const Instruction* i, const Index& index) { return emit(i, index); }
  void forget_cuts() { cuts_.clear(); }
  // The cuts of an instruction that is being calculated, whether or not it has a place.
  Cuts cuts_inside(const Instruction* i);
  llvm::Value* narrowed(ElementType type, llvm::Value* x) { return rounded(type, x); }
  // Constants of more than one element lie in memory, with the code.
  static bool is_array_constant(const Instruction* i);
  void place_constant(const Instruction* i);

  llvm::LLVMContext& context;
  llvm::Module& module;
  llvm::IRBuilder<> b;
  Body* body = nullptr;
  Body* main_body = nullptr;  // of the region's function, which has the stack arrays
  // An array on the stack; no place where they would be too many.
  Place stack_array(int64_t bytes);
  // Takes bytes of temporary memory for good.
  std::function<int64_t(int64_t)> take_memory;
  const int vector_bytes;
  int lanes = 1;                 // of vectors
  llvm::Value* mask = nullptr;   // lanes that count; null: all
  int64_t temporary_buffer = 0;  // which buffer is the temporary memory
  // Whether whole vectors go past the caches into buffers. They lie at multiples of their size.
  bool streams = false;

 private:
  llvm::Value* emit(const Instruction* i, const Index& index);
  Cuts find_cuts(const Instruction* i);
  llvm::Value* elementwise(const Instruction* i, llvm::SmallVectorImpl<llvm::Value*>& x);
  llvm::Value* function_of(const Instruction* i, llvm::ArrayRef<llvm::Value*> x);
  llvm::Value* call_vector(Opcode opcode, const char* name, llvm::ArrayRef<llvm::Value*> x);
  // A function of one vector as instructions; null where there are none. See Note [Functions in
  // instructions].
  llvm::Value* instructions_of(Opcode opcode, llvm::Value* x);
  llvm::Value* integer_operation(const Instruction* i, ElementType type, llvm::Value* x,
                                 llvm::Value* y);
  llvm::Value* compare(const Instruction* i, llvm::Value* x, llvm::Value* y);
  // Complex numbers; see complex.cpp.
  struct Parts {
    llvm::Value *real, *imag;
  };
  Parts parts(llvm::Value* z);
  llvm::Value* joined(Parts z);
  llvm::Value* complex_combination(Opcode opcode, llvm::Value* x, llvm::Value* y);
  llvm::Value* complex_operation(const Instruction* i, llvm::ArrayRef<llvm::Value*> x);
  llvm::Value* quotient(llvm::Value* x, llvm::Value* y);
  llvm::Value* reduced_precision(const Instruction* i, llvm::Value* x);
  llvm::Value* convert(ElementType from, ElementType to, llvm::Value* x);
  llvm::Value* rounded(ElementType type, llvm::Value* x);
  llvm::Value* to_memory(ElementType type, llvm::Value* x);
  llvm::Value* from_memory(ElementType type, llvm::Value* x);
  llvm::Value* from_half(llvm::Value* x);
  llvm::Value* movement(const Instruction* i, const Index& index);
  llvm::Function* comparator(const Instruction* i);
  Lane spread_place(const Lane& at, int64_t size, int64_t apart, llvm::Value** valid);
  // Result `which` of a reduce-window.
  llvm::Value* windowed(const Instruction* i, size_t which, const Index& index);
  llvm::Value* padded(const Instruction* i, const Index& index);
  llvm::Value* gathered(const Instruction* i, const Index& index);
  llvm::Value* clamped(ElementType type, llvm::Value* start, int64_t largest);
  llvm::Value* constant(const Instruction* i);
  llvm::Type* widened(llvm::Type* type, llvm::Value* like);
  llvm::Value* intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> x);

  // Whether lanes that do not count may be read or written in a stack array: they are its padding.
  bool is_padded(const Place& place, ElementType type, const Lane& at, bool is_written) const;
  struct StackArray {
    int64_t bytes;
    llvm::AllocaInst* memory;
    int64_t slot = -1;  // where other functions find its address
  };
  std::vector<StackArray> stack_arrays_;
  int64_t stack_bytes_ = 0;

  using Key = std::vector<const void*>;
  static Key key_of(const Instruction* i, const Index& index);
  std::unordered_map<const Instruction*, Cuts> cuts_;
  std::map<llvm::Constant*, llvm::Value*> shared_constants_;
  std::map<Key, llvm::Value*> memory_;
  std::vector<std::map<Key, llvm::Value*>::iterator> remembered_;
  std::vector<size_t> scopes_;

 public:
  void remember(const Instruction* i, size_t which, const Index& index, llvm::Value* value);
  // What was remembered, or null.
  llvm::Value* recall(const Instruction* i, size_t which, const Index& index) const;
};

template <class F>
void Emitter::loop(llvm::Value* begin, llvm::Value* end, int64_t step, F&& emit_body) {
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* head = llvm::BasicBlock::Create(context, "loop", function);
  auto* after = llvm::BasicBlock::Create(context, "after", function);
  b.CreateCondBr(b.CreateICmpSLT(begin, end), head, after);
  b.SetInsertPoint(head);
  llvm::PHINode* at = b.CreatePHI(b.getInt64Ty(), 2);
  at->addIncoming(begin, before);
  begin_scope();
  emit_body(static_cast<llvm::Value*>(at));
  end_scope();
  llvm::Value* next = b.CreateAdd(at, i64(step), "", false, true);
  at->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), head, after);
  b.SetInsertPoint(after);
}

}  // namespace lamella::hlo::compiler
