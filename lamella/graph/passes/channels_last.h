// Pass: moves channels to the last dimension in convolutions and the instructions that follow them.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Channels last]
//   The convolution library calculates with the channels of an element adjacent in memory. If a
//   program has channels before the spatial dimensions, this pass makes convolutions produce them
//   last, and also the instructions that use the results: elementwise operations, reduced windows,
//   and sums whose remaining dimensions stay in order. Other users read a transpose. A convolution
//   whose only use is a transpose writes the transposed result itself.

// True if a convolution is faster with channels last: if each result sums many products, or few and
// the output channels are one block of the library, or if every channel is a group. False for other
// instructions.
bool is_fast_last(const Instruction& i);
// For programs that will be compiled. Returns the number of changed convolutions.
int64_t channels_last(Module& module);

}  // namespace lamella::hlo
