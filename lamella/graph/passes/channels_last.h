// Convolutions and what follows them in the layout that is fastest.
#pragma once
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Note [Channels last]
//   The library of convolutions computes with the channels of an element side by side. Where a
//   program has them before the spatial dimensions, convolutions give them last, and so does what
//   is made of their results: elementwise operations, windows that are reduced, and sums whose
//   dimensions stay in order. What reads a result in another way reads a transpose. A convolution
//   of which nothing but the transpose is read writes that itself.

// Whether a convolution is faster with channels last: of many inputs, of few whose results
// are one block of the library, or of one for each group. False of other instructions.
bool is_fast_last(const Instruction& i);
// For programs of which machine code is made. Returns how many convolutions it changed.
int64_t channels_last(Module& module);

}  // namespace lamella::hlo
