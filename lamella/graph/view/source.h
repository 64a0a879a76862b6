// Source locations of instructions, from their metadata and the module's source tables.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct SourceFrame {
  std::string file, function;
  int64_t line = 0, column = 0;
};

// Parses the source tables of a module once. Malformed tables are not an error, because they only
// serve display.
class Sources {
 public:
  explicit Sources(const Module& module);
  // The stack frames of an instruction, innermost first; empty if unknown.
  std::vector<SourceFrame> frames(const Instruction& instruction) const;
  // "model.py:12 (loss)" of the innermost frame, or "".
  std::string place(const Instruction& instruction) const;

 private:
  struct Location {
    int64_t file = 0, function = 0, line = 0, column = 0;
  };
  struct Frame {
    int64_t location = 0, parent = 0;
  };
  std::unordered_map<int64_t, std::string> files_, functions_;
  std::unordered_map<int64_t, Location> locations_;
  std::unordered_map<int64_t, Frame> frames_;
};

// The (name, value) fields of `{op_name="jit(f)/add" source_line=3}`; strings are unquoted.
std::vector<std::pair<std::string, std::string>> metadata_fields(std::string_view text);
// The field op_name of an instruction's metadata, or "".
std::string op_name(const Instruction& instruction);

}  // namespace lamella::hlo
