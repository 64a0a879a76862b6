// Export: a module as a tree of StableHLO's operations, which the writer encodes. Internal to
// lamella/graph/stablehlo.
//
// Note [Tuples fall apart]
//   StableHLO's operations have several results where HLO's instructions have a tuple. So a value
//   of a module is here the list of the arrays and tokens that it consists of: tuple and
//   get-tuple-element need no operation, and parameters and results of a program are arrays.
#pragma once
#include <unordered_map>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/stablehlo/tree_maker.h"

namespace lamella::hlo::stablehlo {

// The newest version of VHLO whose operations are written: 1.10.
inline constexpr int kWrittenVersion = 110;

class Export {
 public:
  explicit Export(Arena& arena) : make_(arena) {}
  Operation* run(const Module& module);

 private:
  using Values = std::vector<Value*>;
  using Map = std::unordered_map<const Instruction*, Values>;

  [[noreturn]] void refuse(const Instruction& i, std::string_view why) const;
  Operation* function(const Computation& from, bool is_entry);
  void add_entry_attributes(Operation* op, const Module& module);
  // A block of the computation's instructions and a return; `parameters` are its parameters'
  // values. Without them the parameters become the block's arguments.
  Block* block(const Computation& from, const std::vector<Values>* parameters);
  void add_region(Operation* op, const Computation& from, const std::vector<Values>* parameters) {
    op->regions.emplace_back().blocks.push_back(block(from, parameters));
  }
  void instruction(const Instruction& i);
  bool without_operation(const Instruction& i, Values& values);
  // Rules of instructions whose attributes differ; false for those that the table maps alone.
  bool special(const Instruction& i, Operation* op);
  void mapped_attributes(const Instruction& i, Operation* op, std::string_view words);
  const Attribute* mapped(const Instruction& i, std::string_view name, AttributeKey key);
  const Attribute* groups(const Instruction& i, AttributeKey key);
  const Attribute* accuracy(const Instruction& i);
  const Attribute* frontend_attributes(std::string_view text);
  void common_attributes(const Instruction& i, Operation* op);
  void custom_call(const Instruction& i, Operation* op);
  void by_name(const Instruction& i, Operation* op);
  void dot(const Instruction& i, Operation* op);
  void convolution(const Instruction& i, Operation* op);
  void window(const Instruction& i, Operation* op, const char* strides, const char* base,
              const char* dilations);
  void precision(const Instruction& i, Operation* op);

  Operation* operation(std::string_view name);
  Values results_of(const Shape& shape);
  void add(Operation* op, std::string_view name, const Attribute* value) {
    op->attributes.push_back({name, value});
  }
  const Values& values(const Instruction* i) const { return map_->at(i); }

  TreeMaker make_;
  Block* block_ = nullptr;
  Map* map_ = nullptr;
  int depth_ = 0;
  std::unordered_map<const Computation*, bool> wanted_;  // whether its function was made
  std::vector<const Computation*> waiting_;
};

// The table's newest row that may be written for an opcode: its name with the version, and the
// words of its attributes. NULL if there is none.
struct WrittenRow {
  std::string name;
  std::string_view plain_name, attributes, regions;
};
const WrittenRow* written_row(Opcode opcode);

// MLIR's bytecode of a tree.
std::string write_bytecode(const Operation& root);
// How a product is computed, as attributes of dot_general; an empty word is the default.
std::vector<Named> algorithm_attributes(std::string_view word, TreeMaker& make);

}  // namespace lamella::hlo::stablehlo
