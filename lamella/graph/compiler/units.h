// Units: the loops of a computation. See Note [Units] in program.h.
#pragma once
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/compiler/views.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo::compiler {

// A value that is wanted in these places.
struct Wanted {
  const Instruction* instruction;
  std::vector<Place> places;
};

// How a unit reads what is in memory.
enum class Access : uint8_t {
  Same,  // the element that is written
  Row,   // the element of the row
  Other,
};
struct Read {
  const Instruction* origin;  // what was written, or stands outside
  size_t leaf;                // which of its arrays
  Access access;
  int rows;  // of Row: how many leading dimensions are those of the row
};

struct Member {
  enum Level : uint8_t { Full, Row, Reduction };
  const Instruction* instruction = nullptr;
  Level level = Full;
  int phase = 0;
  bool is_stored = true;
  bool is_kept = false;  // for a later phase of its row
  std::vector<Read> reads;
};
struct Unit {
  enum Kind : uint8_t { Loops, Pieces, Other };
  Kind kind = Loops;
  std::vector<Member> members;
  std::vector<int64_t> sizes;  // that are walked, without those of 1
  int rows = -1;               // how many of them are the rows'; -1: nothing is reduced
  int weight = 0;              // of one element, roughly in instructions
};

class UnitPlan {
 public:
  UnitPlan(Emitter& emitter, std::span<const Instruction* const> instructions,
           const std::vector<Wanted>& wanted);

  std::vector<Unit> units;
  // An operand of what is no loop, as strides over what is there.
  View view(const Instruction* i) const { return view_of(i, inside_); }
  // Additions that are done by the product or the convolution that they read.
  struct Sum {
    const Instruction *product, *row;
  };
  std::unordered_map<const Instruction*, Sum> sums;
  // Transposes of the results of attention, which lie there transposed already.
  std::unordered_map<const Instruction*, const Instruction*> exchanged;

  // Says of what is written where it is wanted.
  void place_wanted(const Wanted& wanted,
                    std::unordered_map<const Instruction*, std::vector<Place>>* destination) const;
  // Whether the memory is still read when unit `u` has begun to write `i` there.
  bool is_read_after(const Place& place, size_t u, const Instruction* i) const;
  // Temporary memory that nobody reads after unit `u`, out of `ending`, and from which the unit
  // takes each element only where it makes the same element of `i`: there `i` may be written.
  Place read_in_place(size_t u, const Instruction* i, std::span<const Place> ending) const;
  // The last unit that reads the instruction, or `u`.
  size_t last_use(const Instruction* i, size_t u) const;
  // Wanted places, from the buffer on, that may lie in the memory of a buffer that stands outside.
  std::vector<std::pair<int64_t, int64_t>> sharing(int64_t first_output) const;

  // Whether the loop `i` never changes an array of its state.
  static bool is_invariant(const Instruction* i, size_t leaf);
  // What made an array of a loop's first state, if nobody reads it after the loop's unit `u` and
  // it is only one of the state's arrays. Otherwise null.
  std::pair<const Instruction*, size_t> maker_of_start(const Instruction* i, size_t leaf,
                                                       size_t u) const;

  void emit_loops(Unit& unit);
  // Whether a unit reduces so many elements to one that threads share them: see blocks.cpp.
  static bool is_in_blocks(const std::vector<int64_t>& sizes, int rows);
  // Concatenate and dynamic-update-slice: parts of the result written one after the other.
  void emit_pieces(Unit& unit);

 private:
  bool is_given(const Instruction* i) const { return inside_.count(i) == 0; }
  // Whether the instruction has places without being written itself.
  bool is_alias(const Instruction* i) const;
  bool is_placed(const Instruction* i) const {
    return is_given(i) || written_.count(i) != 0 || is_alias(i);
  }
  // What has the places of an instruction, and the first of them that is its own.
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
  std::vector<Read> reads_of(const Instruction* i);
  int weight_of(const Instruction* i);
  void keep_for_later(Unit& unit);
  Index groups_of(const Unit& unit);
  int lanes_of(const Unit& unit, int64_t size);
  // `linear`: the place of the first lane's element in what is stored, if lanes are neighbours
  // there although the index does not say so.
  void emit_elements(Unit& unit, const Index& index, llvm::Value* linear = nullptr);
  bool is_walked_flat(const Unit& unit, const Index& index, int64_t last);
  void store_all(const Instruction* i, const Index& index, llvm::Value* value);
  void make_row_memory(const Unit& unit, const Member& member);
  void emit_row(Unit& unit, Index& index, size_t outer);
  void emit_blocks(Unit& unit, Index& index);
  void emit_range(Unit& unit, Index& index, size_t outer, llvm::Value* begin, llvm::Value* end);
  void emit_step(Unit& unit, Index& index, size_t outer, llvm::Value* at);

  Emitter& e_;
  std::unordered_set<const Instruction*> inside_;
  std::unordered_set<const Instruction*> written_;
  std::unordered_set<const Instruction*> needed_;
  std::unordered_map<const Instruction*, int> weights_;
  std::unordered_map<const Instruction*, size_t> unit_of_;
  std::vector<Wanted> wanted_;
  // Whether the rows of the unit that is emitted are a few vectors, which stay in registers.
  bool in_registers_ = false;
};

}  // namespace lamella::hlo::compiler
