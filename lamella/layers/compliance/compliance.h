// Checks that composite kernels only call operators. Internal to Lamella; Python has
// lamella.testing.check_composite_compliance.
//
// Note [Composite kernels under guard]
//   A composite kernel (CompositeImplicitAutograd) only calls operators, so that every layer sees
//   what it does. While LAMELLA_MODE_COMPOSITE_CHECK is on, every call of the thread first reaches
//   this layer's kernel (the fallback of TESTING_ONLY_GenericMode). It calls a composite kernel
//   with guards in the place of its tensors: tensors with the same shape, type, keys and flags,
//   whose memory is a trap. An operator that a composite kernel calls gets the real tensors
//   instead, and its results are guarded in turn. So anything that a composite kernel does
//   besides calling operators is detected:
//     - reading or writing elements touches the trap, which records it and lets the access pass;
//     - changing the sizes, strides, dtype or flags of a guard makes it differ from its tensor;
//     - making a tensor over a guard's memory without an operator leaves a tensor without a guard;
//     - item, resize_, set_ and out= operators are recognised when they are called. An operator
//       tagged data_dependent_output or dynamic_output_shape may call item; one with an out
//       argument may call out= operators.
//   The call then fails, and the error names the operator and what its kernel did.
#pragma once
#include "lamella/core/macros.h"

namespace lamella::compliance {

// Puts the kernel in front of all calls of this thread, or removes it. For lamella_set_modes(). The
// first call registers the kernel.
LAMELLA_PRIVATE_API void set_on_thread(bool on);

}  // namespace lamella::compliance
