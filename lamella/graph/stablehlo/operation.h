// Operation: StableHLO as a tree, which the readers of bytecode and of text make, and which becomes
// a module. Internal to lamella/graph.
//
// Note [One tree]
//   Bytecode and text say the same in different words, so both readers give one form: names without
//   dialect and version ("add"), attributes of structures spread out (offset_dims, not
//   dimension_numbers), enumerations as words. Everything lives in the arena of the module that is
//   made of the tree.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/arena.h"
#include "lamella/graph/hlo/element_type.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {
class Instruction;
}
namespace lamella::hlo::stablehlo {

inline constexpr int64_t kUnknownSize = INT64_MIN;
// Levels of types, attributes and regions within each other.
inline constexpr int kMostNested = 100;

struct Type {
  enum class Kind : uint8_t { Element, Tensor, Tuple, Token, Function, Buffer, Future, Other };
  Kind kind = Kind::Other;
  ElementType element = ElementType::Invalid;
  std::vector<int64_t> sizes;  // kUnknownSize for a dimension without a size
  std::vector<int64_t> bounds;
  std::vector<const Type*> parts;    // of a tuple; a function's operands
  std::vector<const Type*> results;  // of a function
  std::string_view name;             // of the kind Other; "index" if elements are of that type
};

struct Attribute;
struct Named {
  std::string_view name;
  const Attribute* value;
};
struct Attribute {
  enum class Kind : uint8_t {
    Unit,
    Boolean,
    Integer,
    Real,
    String,
    Word,  // an enumerator, or a text that is kept as it is
    Symbol,
    TypeOf,
    List,
    Dictionary,
    Elements,  // of a tensor, as bytes
    Location,
  };
  Kind kind = Kind::Unit;
  int64_t integer = 0;  // of a location: its line
  double real = 0;
  const Type* type = nullptr;  // of a number, or of elements
  std::string_view text;       // of a location: the operation's name; bytes of elements
  std::string_view file;
  bool is_splat = false;  // elements: one stands for all
  std::vector<const Attribute*> list;
  std::vector<Named> entries;
};

struct Value {
  const Type* type = nullptr;
  Instruction* made = nullptr;
  uint32_t mark = 0;  // the last walk that met its definition
};

struct Operation;
struct Block {
  std::vector<Value*> arguments;
  std::vector<Operation*> operations;
};
struct Region {
  std::vector<Block*> blocks;
};
struct Operation {
  std::string_view name;
  size_t position = 0;
  std::vector<Value*> operands;
  std::vector<Value*> results;
  std::vector<Named> attributes;
  std::vector<Region> regions;
  const Attribute* location = nullptr;

  const Attribute* find(std::string_view wanted) const {
    for (const Named& one : attributes) {
      if (one.name == wanted) return one.value;
    }
    return nullptr;
  }
};

// Where a tree was read from, for messages: "stablehlo: line 3, column 7: ..." of a text,
// "stablehlo: byte 120: ..." of bytecode.
struct Source {
  std::string_view data;
  bool is_text = false;

  template <class... Parts>
  [[noreturn]] LAMELLA_COLD void fail(size_t position, const Parts&... parts) const {
    fail_at(position, str(parts...));
  }
  [[noreturn]] void fail_at(size_t position, const std::string& message) const;
};

struct Program {
  Source source;
  Operation* root = nullptr;  // the operation "module"
};

Program read_bytecode(std::string_view data, Arena& arena);
Program read_text(std::string_view data, Arena& arena);

}  // namespace lamella::hlo::stablehlo
