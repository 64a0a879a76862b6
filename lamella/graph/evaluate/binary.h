// The same operation on each pair of elements, for rules that combine elements themselves.
#pragma once
#include <cstdint>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// to[n] = a[n] op b[n] for `count` elements of the type. `to` may be `a` or `b`. The opcode is that
// of a binary operation whose result has the type of its operands. Throws an Error that names the
// instruction where the type has no such operation.
void binary_elements(const Instruction& i, Opcode opcode, ElementType type, const void* a,
                     const void* b, void* to, int64_t count);
// Whether the opcode is one of those.
bool is_binary_element_operation(Opcode opcode);

}  // namespace lamella::hlo
