// The short notation of asynchronous pairs: "add-start" and "add-done", for any opcode.
#pragma once
#include <optional>
#include <string_view>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

struct ShortPair {
  Opcode opcode;   // async-start, async-update or async-done
  Opcode wrapped;  // the operation that runs asynchronously
};
// Parses a word such as "add-start"; nullopt if it is not of that form.
std::optional<ShortPair> short_pair(std::string_view word);
// Whether the attribute of an instruction of a pair is of the pair itself, not of the operation.
inline bool is_of_pair(Opcode wrapped, bool is_link, AttributeKey key) {
  return key == AttributeKey::AsyncExecutionThread ||
         (key == AttributeKey::OutputToOperandAliasing && wrapped == Opcode::Call && !is_link);
}
// Turns `one`, which was parsed as the wrapped operation, into an async-start that calls `body`.
// `body`, which must be empty, gets the wrapped operation on parameters of the operands' shapes.
void wrap_in_start(Module& module, Instruction* one, Computation* body);

}  // namespace lamella::hlo
