// Tensors that no layer watches.
#pragma once
#include "lamella/abi/autograd.h"
#include "lamella/core/key_set.h"
#include "lamella/core/tensor_base.h"
#include "lamella/dispatch/guards.h"

namespace lamella::native {

// Whether no layer would see what a composite operator calls with this tensor, whose elements lie
// on the CPU: then loops may take the place of operators.
inline bool is_plain(const TensorBase& t) {
  constexpr uint64_t kBelow =
      default_key_set(kCPU) |
      lamella::detail::functionality_bit(lamella::detail::Functionality::ThreadInit);
  const uint64_t keys = (t.key_set() | lamella_thread.included) & ~lamella_thread.excluded;
  return t.is_cpu() && (keys & ~(kBelow | kRequiresGradBits)) == 0 &&
         ((keys & kRequiresGradBits) == 0 || !t.requires_grad()) &&
         (lamella_thread.modes & LAMELLA_MODE_COMPOSITE_CHECK) == 0;
}

}  // namespace lamella::native
