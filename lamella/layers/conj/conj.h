// Lazy conjugates and negatives. Internal to Lamella.
//
// Note [Lazy conjugates]
//   conj() of a complex tensor is a view with LAMELLA_TENSOR_CONJ set: its elements are the
//   conjugates of the elements in memory. In the same way LAMELLA_TENSOR_NEG says that they are the
//   negatives; imag() of a lazy conjugate is such a view. A tensor with the flag has the key
//   Conjugate or Negative, so that each call with one meets this layer, and no other call does.
//
//   By the operator:
//   - views pass the flag on, and composite kernels call operators that come here themselves;
//   - an operator with a kernel (or a fallthrough) registered at the key handles the flag itself;
//   - any other gets its arguments resolved: a copy with the elements computed. An argument that it
//     writes is resolved in its memory, handed over without the flag, and changed back after.
//   Functionalize and Python are shown clone for a value that is computed, and copy_ for one that
//   is written, since they replace or record what they see.
#pragma once

namespace lamella::lazy {

// Registers the fallbacks of both keys.
void register_layer();

}  // namespace lamella::lazy
