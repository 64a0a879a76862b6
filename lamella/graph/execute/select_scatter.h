// Select-and-scatter as code: the gradient of windows of which one element is taken.
#pragma once
#include <cstdint>
#include <optional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Arrays are [outer][three spatial dimensions][lanes], of which only the spatial ones have windows;
// what has fewer is filled up in front. Laid out as the code has it among its constants.
struct SelectScatter {
  int64_t is_double;                // F64, not F32
  int64_t takes_less, takes_equal;  // an element stays chosen beside another one
  int64_t outer, lanes;
  int64_t in[3], out[3], size[3], stride[3], padding[3];
};
// What machine code needs of a select-and-scatter of F32 or F64 that compares two elements and adds
// what it scatters, with windows in at most three neighbouring dimensions; nothing for others.
std::optional<SelectScatter> select_scatter(const Instruction& i);
// Calls function(context, begin, end) for ranges that cover [0, count), on several threads.
using ParallelLoop = void (*)(void (*function)(void* const* context, int64_t begin, int64_t end),
                              void* const* context, int64_t count, int64_t grain);
// Writes the result: the number at `first`, and to the chosen element of each window what `source`
// has for it. Sums are taken in the order of the windows, whatever threads there are.
void run_select_scatter(const SelectScatter& p, const void* operand, const void* source,
                        const void* first, void* result, ParallelLoop parallel);

}  // namespace lamella::hlo
