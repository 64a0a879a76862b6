// Kernels that cast. Internal; lamella/layers/autocast/autocast.h is for users.
#pragma once
#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"

namespace lamella::autocast {

// A boxed kernel for an autocast key of one operator. It casts the floating-point arguments on the
// key's device type, except float64, to the dtype whose number is the kernel's context, and calls
// the operator with autocast off.
LAMELLA_PRIVATE_API lamella_status cast_to_context(const lamella_kernel* kernel,
                                                   const lamella_operator* op, uint64_t keys,
                                                   const lamella_value* arguments,
                                                   lamella_value* returns);

}  // namespace lamella::autocast
