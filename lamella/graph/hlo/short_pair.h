// The short way to write an asynchronous pair: "add-start" and "add-done" for any opcode.
#pragma once
#include <optional>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct ShortPair {
  Opcode opcode;   // async-start, async-update or async-done
  Opcode wrapped;  // what the pair does
};
// What a word stands for that is no opcode itself.
std::optional<ShortPair> short_pair(std::string_view word);
// Makes an instruction that was read as the wrapped one the start of a pair: `body`, which is
// empty, gets the wrapped instruction with parameters for its operands.
void wrap_in_start(Module& module, Instruction* one, Computation* body);

}  // namespace lamella::hlo
