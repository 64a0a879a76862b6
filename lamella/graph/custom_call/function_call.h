// function_call(): calls of operators that machine code calculates, as it does functions' opcodes.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// The kernels' name of the function that a custom call takes of each element of float arrays, such
// as log2 where it calls aten::log2. Null for any other instruction.
const char* function_call(const Instruction& i);
// True for elementwise opcodes and for such calls.
bool is_elementwise(const Instruction& i);

}  // namespace lamella::hlo
