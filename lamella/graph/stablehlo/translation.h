// Translation: makes a module's instructions of StableHLO's operations. Internal to
// lamella/graph/stablehlo.
//
// Note [Regions and computations]
//   A region becomes a computation. What it uses of the values around it is passed as further
//   parameters where the instruction has operands for them (while, conditional); constants, and
//   what is made of constants, are made again inside. An operation with several results becomes an
//   instruction with a tuple, and one get-tuple-element for each of them.
#pragma once
#include <unordered_map>

#include "lamella/graph/builder/attribute_list.h"
#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/stablehlo/operation.h"

namespace lamella::hlo::stablehlo {

// A mesh of the module: its axes, the last one counting fastest.
struct Mesh {
  struct Axis {
    std::string_view name;
    int64_t size;
  };
  std::vector<Axis> axes;
  std::vector<int64_t> devices;  // in the order of the axes
  bool is_maximal = false;       // one device has everything
};
class Translation;
struct OperationRow {
  std::string_view name;
  void (*rule)(Translation&, const Operation&);
  Opcode opcode;
  struct Mapped {
    std::string_view name;
    AttributeKey key;
  };
  std::vector<Mapped> attributes;
  // By region; no key for those that the rule sees to.
  std::vector<std::optional<AttributeKey>> regions;
};
// The newest version's row; NULL if the table has none of the name.
const OperationRow* find_row(std::string_view name);

using Instructions = std::vector<Instruction*>;

class Translation {
 public:
  Translation(const Program& program, Module& module) : program_(program), module_(module) {}
  void run(std::string_view entry);
  // Throws an Error with the position of the operation whose instruction breaks a rule.
  void verify() const;

  Module& module() { return module_; }
  template <class... Parts>
  [[noreturn]] LAMELLA_COLD void fail(const Operation& op, const Parts&... parts) const {
    program_.source.fail(op.position, "'", op.name, "': ", parts...);
  }

  // ---- Of an operation ----
  const OperationRow& row(const Operation& op) const;
  // Checks that there are so many operands, and gives them in the computation being made.
  Instructions operands(const Operation& op, size_t count);
  Instructions operands(const Operation& op);
  void require_regions(const Operation& op, size_t count) const;
  // Attributes; an absent one gives `otherwise`, and throws where there is no such argument.
  const Attribute& attribute(const Operation& op, std::string_view name) const;
  int64_t integer(const Operation& op, std::string_view name) const;
  int64_t integer(const Operation& op, std::string_view name, int64_t otherwise) const;
  std::vector<int64_t> integers(const Operation& op, std::string_view name) const;
  // `count` times `otherwise` if the attribute is absent.
  std::vector<int64_t> integers(const Operation& op, std::string_view name, size_t count,
                                int64_t otherwise) const;
  std::string_view text(const Operation& op, std::string_view name) const;
  // Those that the table maps, and those of every operation: sharding, frontend attributes, place.
  AttributeList attributes(const Operation& op);
  // The shape of the one result, or the tuple of all.
  Shape result_shape(const Operation& op);
  const Shape* shape(const Type& type, size_t position);

  // ---- Instructions ----
  Instruction* add(Opcode opcode, std::span<Instruction* const> operands, AttributeList attributes,
                   const Shape& shape);
  Instruction* add(Opcode opcode, std::initializer_list<Instruction*> operands,
                   const Shape& shape) {
    return add(opcode, std::span(operands.begin(), operands.size()), AttributeList(module_), shape);
  }
  Instruction* constant(Literal literal);
  // A scalar, as an array of this shape.
  Instruction* broadcast(Instruction* scalar, const Shape& shape);
  Instruction* element(Instruction* tuple, size_t index);
  // One of them as it is, others as a tuple.
  Instruction* packed(const Instructions& parts);
  // Makes an instruction with the operation's operands and the attributes, and gives its results.
  void emit(const Operation& op, std::span<Instruction* const> operands, AttributeList attributes);
  // The operation's results are these, or are the elements of a tuple.
  void give(const Operation& op, const Instructions& results);
  void give_parts(const Operation& op, Instruction* made);

  // ---- Regions ----
  // A computation whose parameters are the region's arguments.
  Computation* computation(const Operation& op, size_t region);
  // A computation of one parameter: the region's arguments and the values captured, packed.
  // `returned` is what it returns beside the region's results: nothing, or the values captured.
  Computation* packed_computation(const Operation& op, size_t region,
                                  const std::vector<Value*>& captured, bool returns_captured);
  // The values from outside that regions use, without those that are made again inside.
  std::vector<Value*> captured(const Operation& op);
  // A computation that adds two scalars.
  Computation* sum(ElementType type);
  // The computation of a function.
  struct Function {
    const Operation* operation = nullptr;
    const Type* type = nullptr;
    Computation* computation = nullptr;
  };
  Computation* add_function(std::string_view name);
  const Function& function(const Operation& op, std::string_view name);

  // ---- Of Shardy (sdy.cpp) ----
  // The mesh that a sharding names, and the sharding as HLO states it.
  const Mesh& mesh(const Attribute& stated);
  std::string sharding_text(const Attribute& stated);

 private:
  void find_functions();
  void translate_function(const Function& function, bool is_entry);
  void translate_block(const Operation& op, const Block& block);
  Instructions returned(const Operation& op, const Block& block);
  void translate(const Operation& op);
  Instruction* in_current(const Operation& op, Value* value);
  bool is_remade(const Instruction& made, int depth) const;
  Instruction* remade(Instruction* made);
  Computation* begin(std::string_view name);
  Instruction* parameter(int64_t number, const Shape* shape);
  void finish(Instruction* root);
  void set(AttributeList& list, const Operation& op, AttributeKey key, const Attribute& value);
  void add_common(AttributeList& list, const std::vector<Named>& attributes,
                  const Attribute* location);
  void entry_attributes(const Function& function);
  void module_attributes();
  std::string_view metadata(const Attribute& location);

  const Program& program_;
  Module& module_;
  std::unordered_map<std::string_view, Function> functions_;
  std::vector<std::string_view> waiting_;
  Computation* current_ = nullptr;
  std::unordered_map<Instruction*, Instruction*> remade_;  // into the current computation
  std::unordered_map<const Type*, const Shape*> shapes_;
  std::unordered_map<const Attribute*, std::string_view> metadata_;
  std::unordered_map<const Attribute*, Mesh> meshes_;
  int64_t next_name_ = 1;
  size_t position_ = 0;                             // of the operation being translated
  std::vector<std::pair<int64_t, size_t>> places_;  // numbers of names, and positions
  uint32_t mark_ = 0;
};

#define LAMELLA_STABLEHLO(name, version, since, rule, opcode, attributes, regions) \
  void translate_##rule(Translation& t, const Operation& op);
#include "lamella/graph/stablehlo/operations.def"

// What several rules make.
void add_precision(Translation& t, const Operation& op, AttributeList& list);
void broadcast_in_dim(Translation& t, const Operation& op, Instruction* operand);
// Makes the instruction of an opcode that "chlo.NAME" or "mhlo.NAME" stands for. False if there is
// none, or it does not take these operands.
bool translate_named(Translation& t, const Operation& op, std::string_view name,
                     const Attribute* attributes);
void translate_chlo(Translation& t, const Operation& op);
// A number with a point, an exponent or a name: 2.0, 1e-05, inf.
std::string real_text(double value);
// "{a="1",b="2"}", of a dictionary of strings.
std::string frontend_attributes(const Attribute& dictionary);

}  // namespace lamella::hlo::stablehlo
