// SelectScatter: select-and-scatter, the gradient of pooling, called by machine code.
#pragma once
#include <cstdint>
#include <optional>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Arrays are [outer][three spatial dimensions][lanes]; only the spatial dimensions have windows,
// and missing ones are leading dimensions of size 1. Machine code has this struct among its
// constants.
struct SelectScatter {
  int64_t is_double;                // F64, not F32
  int64_t takes_less, takes_equal;  // an element stays selected if < (else >), or if equal
  int64_t outer, lanes;
  int64_t in[3], out[3], size[3], stride[3], padding[3];
};
// The problem of a select-and-scatter of F32 or F64 that compares two elements and adds the
// scattered ones, with windows in at most three adjacent dimensions; nullopt for any other.
std::optional<SelectScatter> select_scatter(const Instruction& i);
// Calls function(context, begin, end) on several threads, for ranges that cover [0, count).
using ParallelLoop = void (*)(void (*function)(void* const* context, int64_t begin, int64_t end),
                              void* const* context, int64_t count, int64_t grain);
// Writes the result: `first` everywhere, plus the elements of `source` at the selected element of
// each window. The order of sums does not depend on the number of threads.
void run_select_scatter(const SelectScatter& p, const void* operand, const void* source,
                        const void* first, void* result, ParallelLoop parallel);

}  // namespace lamella::hlo
