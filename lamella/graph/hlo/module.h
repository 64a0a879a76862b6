// Module, Computation, Instruction: the in-memory form of HLO.
//
// Note [One block of memory]
//   A module owns its instructions, computations, names, shapes and literals. They are allocated in
//   its arena and live as long as the module; a removed instruction is unlinked, not freed. So an
//   instruction is a handful of pointers and spans, parsing allocates almost nothing, and no code
//   tracks ownership. Equal shapes are one object.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lamella/graph/hlo/arena.h"
#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/hlo/opcode.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

class Computation;
class Module;

class Instruction {
 public:
  Opcode opcode;
  std::string_view name;
  const Shape* shape;
  std::span<Instruction*> operands;
  std::span<Attribute> attributes;  // each key at most once, in the order of attribute.def
  union {
    const Literal* literal = nullptr;  // of a constant
    int64_t parameter_number;          // of a parameter
  };
  Computation* parent = nullptr;
  // Its index in parent->instructions, maintained by the computation.
  int64_t index = 0;

  const Attribute* find(AttributeKey key) const {
    for (const Attribute& one : attributes) {
      if (one.key == key) return &one;
    }
    return nullptr;
  }
  bool has(AttributeKey key) const { return find(key) != nullptr; }
  // Values of attributes; an absent attribute gives `otherwise`, an empty span or text, or null.
  int64_t integer(AttributeKey key, int64_t otherwise = 0) const {
    const Attribute* found = find(key);
    return found != nullptr ? found->integer : otherwise;
  }
  bool flag(AttributeKey key, bool otherwise = false) const {
    return integer(key, otherwise ? 1 : 0) != 0;
  }
  std::span<const int64_t> integers(AttributeKey key) const {
    const Attribute* found = find(key);
    return found != nullptr ? found->integers() : std::span<const int64_t>();
  }
  std::string_view text(AttributeKey key) const {
    const Attribute* found = find(key);
    return found != nullptr ? found->text() : std::string_view();
  }
  Computation* computation(AttributeKey key) const {
    const Attribute* found = find(key);
    return found != nullptr ? found->computation : nullptr;
  }
  const Shape& operand_shape(size_t i) const { return *operands[i]->shape; }
};

class Computation {
 public:
  std::string_view name;
  Module* parent = nullptr;
  std::vector<Instruction*> instructions;  // operands precede their users
  std::vector<Instruction*> parameters;    // by number
  Instruction* root = nullptr;
  std::string_view attributes;  // of the computation itself, as written: execution_thread="main"
  // Whether an instruction has a side effect, once a caller was asked; -1 before.
  mutable std::atomic<int8_t> acts{-1};

  // "(f32[2], s32[]) -> f32[2]".
  std::string signature() const;
};

// A part of a module's output that may (or must) use the memory of a part of a parameter.
struct InputOutputAlias {
  std::vector<int64_t> output;
  int64_t parameter;
  std::vector<int64_t> parameter_index;
  bool must = false;
};

class Module {
 public:
  explicit Module(std::string_view title) { name = arena_.copy(title); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::string_view name;
  std::vector<Computation*> computations;  // callees precede their callers
  Computation* entry = nullptr;
  bool is_scheduled = false;
  std::vector<InputOutputAlias> input_output_aliases;
  // Layouts of the entry's parameters and result as callers see them (entry_computation_layout). If
  // absent, the layouts are those of the instructions' shapes.
  std::vector<const Shape*> entry_parameter_layouts;
  const Shape* entry_result_layout = nullptr;
  // Other attributes of the header, as written: (name, value).
  std::vector<std::pair<std::string_view, std::string_view>> attributes;

  Arena& arena() { return arena_; }
  // Returns the module's unique object for the shape.
  const Shape* intern(Shape shape);
  Computation* add_computation(std::string_view name);
  // Appends an instruction. The spans must live in the arena, and the shape must be interned.
  Instruction* add_instruction(Computation* computation, Opcode opcode, std::string_view name,
                               const Shape* shape, std::span<Instruction* const> operands,
                               std::span<const Attribute> attributes = {});
  Computation* find_computation(std::string_view name) const;
  // A name that no computation was added by: `wanted`, or it with a number.
  std::string free_computation_name(std::string_view wanted);
  int64_t instruction_count() const;

 private:
  Arena arena_;
  std::vector<std::unique_ptr<Computation>> owned_computations_;
  // The names that computations were added by, each with the last number that was tried behind it.
  std::unordered_map<std::string_view, int64_t> computation_names_;
  std::vector<std::vector<const Shape*>> shapes_;  // by hash
  size_t shape_count_ = 0;
};

// Options of printing a module as XLA's text.
struct PrintOptions {
  bool percent = false;         // %name
  bool operand_shapes = false;  // add(f32[2] %a, f32[2] %b)
  bool metadata = true;
  // Constants of more bytes than this are printed without their values, "{...}".
  size_t most_constant_bytes = SIZE_MAX;
};
std::string to_string(const Module& module, const PrintOptions& options = {});
std::string to_string(const Computation& computation, const PrintOptions& options = {});
std::string to_string(const Instruction& instruction, const PrintOptions& options = {});
// The value of an attribute, without its name.
std::string to_string(const Attribute& attribute, const PrintOptions& options = {});

// Parses XLA's text. Throws lamella::Error: "hlo: line 3, column 7: expected ...". The module is
// verified unless `verify` is false.
std::unique_ptr<Module> parse_module(std::string_view text, bool verify = true);

// Sorts the computations so that callees precede their callers; throws on recursion.
void order_computations(Module& module);
// Throws an Error that names the first instruction that breaks a rule.
void verify(const Module& module);
// Throws if the module can be read and drawn, but not run: the text leaves values of a constant
// out, or a shape is a buffer or has a dimension without a bound.
void require_runnable(const Module& module);
// The shape that follows from an instruction's operands and attributes, row-major; throws if they
// are wrong. For opcodes that state their shape (parameter, custom-call, ...) it is the stated one.
Shape infer_shape(const Instruction& instruction);

}  // namespace lamella::hlo
