// Emitter: emits the LLVM code of one region.
//
// Note [Values, places and indices]
//   An instruction is either written to memory, and then has a place for each array of its value,
//   or it is calculated where it is read, element by element, at an index. An index says, for each
//   dimension of a shape, which elements the lanes of a vector are. Dimensions of size 1 are left
//   out of it, and adjacent dimensions that are always walked together form one group. So moving
//   elements costs nothing: broadcast, transpose, slice, pad, ... only change the index.
//
//   In registers PRED is i1, F16 and BF16 are floats with rounded values, and C64 is an i64 with
//   the real part in its lower half.
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

// The coordinate of lane l along a group of dimensions: base + stride * l, or lanes[l].
struct Lane {
  llvm::Value* base = nullptr;  // i64
  int64_t stride = 0;
  llvm::Value* lanes = nullptr;  // <W x i64>, instead of the others

  bool is_uniform() const { return lanes == nullptr && stride == 0; }
};
// `count` adjacent dimensions, counted without those of size 1, and the lanes' coordinates along
// them.
struct Group {
  int first;
  int count;
  Lane at;
};
using Index = llvm::SmallVector<Group, 4>;

// The dimensions of a shape whose sizes are not 1.
struct Extent {
  std::vector<int64_t> sizes;
  std::vector<int> dimensions;
  std::vector<int> position;  // of each dimension of the shape in `sizes`; -1: size 1

  explicit Extent(const Shape& shape);
  int rank() const { return static_cast<int>(sizes.size()); }
  int64_t elements() const;
  // Distance in elements between neighbours along the last dimension of a group.
  int64_t stride(int last) const;
  int64_t product(int first, int count) const;
};

// Where an array is in memory.
struct Place {
  // Small temporary arrays are on the stack, where they may become registers.
  enum Kind : uint8_t { None, Buffer, Temporary, Stack, Constant } kind = None;
  int64_t at = 0;  // number of the buffer or stack array, or byte offset in the temporary memory
  llvm::Value* data = nullptr;  // of a constant
  bool operator==(const Place&) const = default;
};

// The number of arrays in a shape, tuples flattened.
size_t leaf_count(const Shape& shape);

// Boundaries between dimensions (of those that are not 1): true at p if dimensions p - 1 and p must
// be walked separately, false if they may be walked as one.
using Cuts = std::vector<bool>;

// One LLVM function under construction.
struct Body {
  llvm::Function* function = nullptr;
  llvm::Value* buffers = nullptr;  // the table of arrays
  std::map<std::pair<int, int64_t>, llvm::Value*> pointers;
  // If not null, the table has these places, in their order, instead of the region's arrays. Other
  // places are added to them when they are first used.
  std::vector<Place>* slots = nullptr;
  int inline_functions = 0;  // how many functions of vectors it has as inline instructions
};

class Emitter {
 public:
  Emitter(llvm::Module& module, int vector_bytes, bool on_device = false);

  // ---- Values. The places of the instructions that are in memory, filled in by the code that lays
  // out memory.
  std::unordered_map<const Instruction*, std::vector<Place>> places;

  // The value of an array instruction at the index; a scalar if the index is uniform.
  llvm::Value* value(const Instruction* i, const Index& index);
  // The results of a computation of scalars, applied to each lane.
  std::vector<llvm::Value*> apply(const Computation& computation,
                                  const std::vector<llvm::Value*>& arguments);
  // The boundaries at which a walk over the instruction's elements must be split.
  Cuts cuts(const Instruction* i);
  // The place of an array instruction, or of the one that it is an alias of; none if it has none.
  std::optional<Place> place_of(const Instruction* i) const;
  // The places of all arrays of a value; empty if it has none.
  std::vector<Place> places_of(const Instruction* i) const;

  // The initial value of a tuple element of a loop whose code is not emitted yet: only elements
  // that the loop never changes are read that early. Null for everything else.
  const Instruction* start_of(const Instruction* i) const;

  llvm::Value* load(const Place& place, const Shape& shape, const Index& index);
  void store(const Place& place, const Shape& shape, const Index& index, llvm::Value* value);
  // The same at an offset of `at` elements.
  llvm::Value* load_at(llvm::Value* data, ElementType type, const Lane& at);
  llvm::Value* load_apart(llvm::Value* data, llvm::FixedVectorType* vector, llvm::Align alignment,
                          const Lane& at);
  void store_at(llvm::Value* data, ElementType type, const Lane& at, llvm::Value* value);
  void store_at(const Place& place, ElementType type, const Lane& at, llvm::Value* value);
  llvm::Value* pointer(const Place& place);

  // ---- Loops. `body` gets the index of the step; values remembered inside are forgotten after it.
  template <class F>
  void loop(llvm::Value* begin, llvm::Value* end, int64_t step, F&& body);
  // Memory of the function that keeps one row of a value for a later phase of that row. The index
  // of an element in it leaves out the first `rows` dimensions.
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
  // Makes all of them vectors if one is a vector.
  void even_out(std::initializer_list<llvm::Value**> values);
  Lane uniform(llvm::Value* base) { return {base, 0, nullptr}; }
  llvm::Value* to_lanes(const Lane& lane);
  Lane plus(const Lane& a, const Lane& b);
  Lane times(const Lane& a, int64_t factor);
  Lane shifted(const Lane& a, int64_t by) { return plus(a, uniform(i64(by))); }
  Lane linear(const Extent& extent, const Index& index);
  Index split(const Extent& extent, const Cuts& cuts, const Lane& linear);
  // The groups with the coordinates of lanes that are consecutive elements from `first` on. All
  // elements must be numbered below 2^31.
  Index in_groups(const Extent& extent, Index groups, llvm::Value* first);
  Lane of_dimension(const Extent& extent, const Index& index, int64_t dimension);
  llvm::Value* call_kernel(const char* name, llvm::ArrayRef<llvm::Value*> x);
  // A global variable that holds the constant; equal constants share one.
  llvm::Value* shared_constant(llvm::Constant* constant);
  llvm::FunctionCallee runtime(const char* name, llvm::Type* result,
                               llvm::ArrayRef<llvm::Type*> arguments);
  llvm::Value* reduce_identity(Opcode opcode, ElementType type);
  llvm::Value* combine(Opcode opcode, ElementType type, llvm::Value* x, llvm::Value* y);
  llvm::Value* across_lanes(Opcode opcode, ElementType type, llvm::Value* vector);
  // Result `which` of a reduce.
  llvm::Value* reduction(const Instruction* i, size_t which, const Index& index);
  std::vector<Lane> dynamic_starts(const Instruction* i, size_t first, const Shape& slice);
  // A stack slot of the function for one value, which LLVM turns into a register.
  llvm::Value* variable(llvm::Type* type);
  // The type in which a reduction accumulates: F32 for small floats, integers for extremes of
  // floats (see Note [Extremes of floats]). to_reduction() converts operands to it,
  // from_reduction() converts results from it.
  static ElementType reduction_type(Opcode opcode, ElementType type);
  llvm::Value* to_reduction(Opcode opcode, ElementType type, llvm::Value* x);
  llvm::Value* from_reduction(Opcode opcode, ElementType type, llvm::Value* x);
  // Lanes of a vector of this type along a dimension of `size` elements.
  int natural_lanes(ElementType type, int64_t size) const;
  // Walks `size` elements, `lanes` at a time, the last ones under a mask. `unroll` vectors are done
  // in one step, with part 0, 1, ... With `straight` there is no loop, and calculated values are
  // remembered afterwards.
  void along_lanes(int64_t size, int unroll,
                   const std::function<void(llvm::Value* at, int part)>& each,
                   bool straight = false);
  // Writes a prefix reduction: the running value after each element.
  void prefixes(const Instruction* i);
  // Scatters into the place of `i`.
  void scatter(const Instruction* i);
  // Sorts into the places of `i`; returns the condition for return_if().
  llvm::Value* sorted(const Instruction* i);
  // Calculates an instruction even if it has a place.
  llvm::Value* calculate(const Instruction* i, const Index& index) { return emit(i, index); }
  void forget_cuts() { cuts_.clear(); }
  bool is_short_loop = false;
  // The cuts of an instruction that is being calculated, even if it has a place.
  Cuts cuts_inside(const Instruction* i);
  llvm::Value* narrowed(ElementType type, llvm::Value* x) { return rounded(type, x); }
  // Constants of more than one element are in memory, beside the code.
  static bool is_array_constant(const Instruction* i);
  void place_constant(const Instruction* i);

  llvm::LLVMContext& context;
  llvm::Module& module;
  llvm::IRBuilder<> b;
  Body* body = nullptr;
  Body* main_body = nullptr;  // of the region's function, which has the stack arrays
  // An array on the stack, or Place::None if the stack arrays would become too large.
  Place stack_array(int64_t bytes);
  int64_t stack_array_bytes(const Place& place) const {
    return stack_arrays_[static_cast<size_t>(place.at)].bytes;
  }
  // Reserves bytes of temporary memory for the whole function; returns their offset.
  std::function<int64_t(int64_t)> take_memory;
  const int vector_bytes;
  const bool on_device;          // a thread of a GPU; functions are calculated lane by lane
  int lanes = 1;                 // of a vector
  llvm::Value* mask = nullptr;   // active lanes; null: all
  int64_t temporary_buffer = 0;  // which buffer is the temporary memory
  // True if whole vectors are stored to buffers past the caches. They are aligned to their size.
  bool streams = false;

 private:
  llvm::Value* emit(const Instruction* i, const Index& index);
  Cuts find_cuts(const Instruction* i);
  llvm::Value* elementwise(const Instruction* i, llvm::SmallVectorImpl<llvm::Value*>& x);
  llvm::Value* function_of(const Instruction* i, llvm::ArrayRef<llvm::Value*> x);
  llvm::Value* call_vector(const char* name, llvm::ArrayRef<llvm::Value*> x);
  // The kernels' function of that name as inline instructions; null if it has none, or so many are
  // inline already that a call in a short loop is better. See Note [Functions in instructions].
  llvm::Value* instructions_of(const char* name, llvm::ArrayRef<llvm::Value*> x);
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
  llvm::Value* saturated(llvm::Type* type, bool is_signed, llvm::Value* x);
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

  // True if inactive lanes may be read or written, because they are the padding of a stack array.
  bool is_padded(const Place& place, ElementType type, const Lane& at, bool is_written) const;
  struct StackArray {
    int64_t bytes;
    llvm::AllocaInst* memory;
    int64_t slot = -1;  // offset in temporary memory where other functions find its address
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
  // The remembered value, or null.
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
