// Helpers for boxed calls: their key set, and the tensors in a value. Internal to Lamella.
#pragma once
#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"

namespace lamella {

// The key set that a boxed call has on this thread.
LAMELLA_PRIVATE_API uint64_t key_set_of_call(const lamella_operator* op,
                                             const lamella_value* arguments);

// Calls f(lamella_tensor*) for each tensor of a value, in order; undefined ones, and the absent one
// of a Tensor?, as NULL.
template <class F>
LAMELLA_ALWAYS_INLINE void each_tensor(const lamella_value& value, F&& f) {
  if (LAMELLA_LIKELY(value.tag == LAMELLA_TENSOR)) {
    f(value.as.tensor);
  } else if (value.tag == LAMELLA_TENSOR_LIST) {
    auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
    for (uint32_t i = 0; i < value.size; ++i) f(list[i]);
  } else if (value.tag == LAMELLA_NONE) {
    f(static_cast<lamella_tensor*>(nullptr));
  }
}

}  // namespace lamella
