// UnitPlan: the units of a computation, mostly loops. See Note [Units] in program.h.
#pragma once
#include <functional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/compiler/views.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo::compiler {

// A value, and the places that its arrays must be in when the computation ends.
struct Wanted {
  const Instruction* instruction;
  std::vector<Place> places;
};

// The index at which a unit reads an array in memory.
enum class Access : uint8_t {
  Same,  // the index of the element that is written
  Row,   // the index of the row
  Other,
};
struct Read {
  const Instruction* origin;  // the instruction that was written, or is from outside
  size_t leaf;                // which of its arrays
  Access access;
  int rows;  // for Row: the number of leading dimensions that index the row
};

// One instruction that a unit calculates: for each element, for each row, or as a reduction.
struct Member {
  enum Level : uint8_t { Full, Row, Reduction };
  const Instruction* instruction = nullptr;
  Level level = Full;
  int phase = 0;
  int size = 0;  // weight of what it calculates, each instruction once
  bool is_stored = true;
  bool is_kept = false;  // in row memory, for a later phase
  std::vector<Read> reads;
};
struct Unit {
  enum Kind : uint8_t { Loops, Pieces, Other };
  Kind kind = Loops;
  std::vector<Member> members;
  std::vector<int64_t> sizes;  // of the elements that are walked, without sizes of 1
  int rows = -1;               // how many leading sizes are of rows; -1: no reduction
  int weight = 0;              // cost of one element, roughly in instructions
  int size = 0;                // of its members
};

// What the code of a unit depends on, apart from the addresses of arrays: units of equal keys have
// the same code, with these places in this order.
struct UnitForm {
  std::string key;
  std::vector<Place> places;
  bool on_stack;  // true if some of them are on the stack
};

class UnitPlan {
 public:
  UnitPlan(Emitter& emitter, std::span<const Instruction* const> instructions,
           const std::vector<Wanted>& wanted);

  std::vector<Unit> units;
  // An operand of a kernel call as strides over an array in memory.
  View view(const Instruction* i) const { return view_of(i, inside_); }
  // An operand of a product as its kernel reads it. Numbers that are converted to the type of the
  // sums are read before their conversion, if this machine multiplies them as they are.
  View side(const Instruction* dot, size_t n) const;
  // Additions of a row that the product or convolution does itself, by starting its sums with it.
  struct Sum {
    const Instruction *product, *row;
  };
  std::unordered_map<const Instruction*, Sum> sums;
  // Transposes of results of attention calls that write the result transposed already.
  std::unordered_map<const Instruction*, const Instruction*> exchanged;

  // Adds the places in which written values are wanted to `destination`.
  void place_wanted(const Wanted& wanted,
                    std::unordered_map<const Instruction*, std::vector<Place>>* destination) const;
  // True if the memory is read after unit `u` has begun to write `i` there.
  bool is_read_after(const Place& place, size_t u, const Instruction* i) const;
  // Returns temporary memory in which unit `u` may write `i`, or no place. Its last use is unit `u`
  // (it is in `ending`), which reads each element only to calculate the same element of `i`.
  Place read_in_place(size_t u, const Instruction* i, std::span<const Place> ending) const;
  // The last unit that reads the instruction; `u` if no later one does, units.size() if wanted.
  size_t last_use(const Instruction* i, size_t u) const;
  // Pairs (output, input) of buffers that may be the same memory. Outputs are numbered from
  // `first_output` on.
  std::vector<std::pair<int64_t, int64_t>> sharing(int64_t first_output) const;

  // True if the loop `i` never changes this array of its state.
  static bool is_invariant(const Instruction* i, size_t leaf);
  // The instruction, and which of its arrays, that array `leaf` of the initial state of loop `i`
  // is, if the loop's unit `u` is its last use and no other array of the state is the same. Else
  // null.
  std::pair<const Instruction*, size_t> maker_of_start(const Instruction* i, size_t leaf,
                                                       size_t u) const;

  // The form of a unit that may be a function of its own; see forms.cpp.
  std::optional<UnitForm> form_of(const Unit& unit);
  void emit_loops(Unit& unit);
  // The same for a device, as the kernel that is being emitted; see device_loops.cpp.
  struct Launch {
    uint32_t blocks, threads;
  };
  Launch emit_launch(Unit& unit);
  // True if a unit reduces so many elements to a scalar that threads share them: see blocks.cpp.
  static bool is_in_blocks(const std::vector<int64_t>& sizes, int rows);
  // Emits a concatenate or dynamic-update-slice: writes parts of the result one after the other.
  // Calls written() after each part.
  void emit_pieces(Unit& unit, const std::function<void()>& written);

 private:
  bool is_given(const Instruction* i) const { return inside_.count(i) == 0; }
  // True if the instruction has places only as an alias of another one.
  bool is_alias(const Instruction* i) const;
  bool is_placed(const Instruction* i) const {
    return is_given(i) || written_.count(i) != 0 || is_alias(i);
  }
  // The instruction whose places hold array `leaf` of `i`, and the number of that array in it.
  std::pair<const Instruction*, size_t> origin(const Instruction* i, size_t leaf = 0) const;
  void choose_written(std::span<const Instruction* const> instructions,
                      const std::vector<Wanted>& wanted);
  Unit::Kind kind(const Instruction* i) const;
  void find_sums(std::span<const Instruction* const> instructions,
                 const std::vector<Wanted>& wanted);
  void find_transposed(const Instruction* call, std::span<const Instruction* const> instructions,
                       const std::vector<Wanted>& wanted);
  using Seen = std::set<std::tuple<const Instruction*, int, int>>;
  void find_reads(const Instruction* i, Access access, int rows, std::vector<Read>* reads,
                  Seen* seen) const;
  void add_unit(const Instruction* i);
  bool join(Unit& unit, Member member, const std::vector<int64_t>& sizes, int rows);
  // Adds the weights of the instructions that it looks through to `size`.
  std::vector<Read> reads_of(const Instruction* i, int* size);
  int weight_of(const Instruction* i);
  // The same, or that of a load if the instruction is written.
  int weight_of_reading(const Instruction* i);
  void keep_for_later(Unit& unit);
  Index groups_of(const Unit& unit);
  int lanes_of(const Unit& unit, int64_t size);
  // `linear`: the offset of the first lane's element in the stored arrays, if the lanes are
  // adjacent there although the index does not say so.
  void emit_elements(Unit& unit, const Index& index, llvm::Value* linear = nullptr);
  bool is_walked_flat(const Unit& unit, const Index& index, int64_t last);
  void store_all(const Instruction* i, const Index& index, llvm::Value* value);
  void make_row_memory(const Unit& unit, const Member& member);
  void emit_row(Unit& unit, Index& index, size_t outer);
  void emit_blocks(Unit& unit, Index& index);
  void emit_range(Unit& unit, Index& index, size_t outer, llvm::Value* begin, llvm::Value* end);
  void emit_step(Unit& unit, Index& index, size_t outer, llvm::Value* at);

  // Results of this size or more would leave the caches before they are read.
  static constexpr int64_t kLargeBytes = int64_t{8} << 20;

  Emitter& e_;
  std::unordered_set<const Instruction*> inside_;
  std::unordered_set<const Instruction*> written_;
  std::unordered_set<const Instruction*> needed_;
  std::unordered_map<const Instruction*, int> weights_;
  std::unordered_map<const Instruction*, size_t> unit_of_;
  std::vector<Wanted> wanted_;
  // True while rows of the emitted unit are a few vectors, which stay in registers.
  bool in_registers_ = false;
};

}  // namespace lamella::hlo::compiler
