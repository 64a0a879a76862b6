// Tensors that have no memory of their own. Internal: for the layers that wrap tensors.
//
// Note [Batched tensors, seen from elsewhere]
//   A batched tensor (the vmap layer's) wraps another one, its `base`, whose dimension 0 is the
//   batch, and which may be batched itself; `reserved` is the number of its level. Autograd works
//   on the innermost tensor, below all levels. If a user passes a batched tensor, or a gradient
//   whose levels differ from its tensor's, autograd converts it with the functions below. They call
//   operators, so the vmap layer sets them.
#pragma once
#include <utility>
#include <vector>

#include "lamella/core/key_set.h"
#include "lamella/core/tensor_impl.h"

namespace lamella {

// A tensor with LAMELLA_TENSOR_WRAPPER and neither storage nor data. The caller attaches what it
// wraps. `key_set` says which layer it belongs to.
LAMELLA_PRIVATE_API TensorBase make_wrapper(IntArrayRef sizes, IntArrayRef strides,
                                            ScalarType dtype, Device device, uint64_t key_set);

inline bool is_batched(const lamella_tensor* t) {
  constexpr uint64_t key = detail::functionality_bit(detail::Functionality::Batched);
  return (t->flags & LAMELLA_TENSOR_WRAPPER) != 0 && (t->key_set & key) != 0;
}
// The tensor that a batched tensor wraps.
inline lamella_tensor* wrapped(const lamella_tensor* t) {
  return static_cast<const TensorImpl*>(t)->base;
}
// The innermost tensor, below all levels; the tensor itself if it is not batched.
inline lamella_tensor* behind_levels(lamella_tensor* t) {
  while (is_batched(t)) t = wrapped(t);
  return t;
}

// Numbers of levels and sizes of their batches, highest first.
using BatchLevels = std::vector<std::pair<uint32_t, int64_t>>;
inline BatchLevels levels_of(const lamella_tensor* t) {
  BatchLevels levels;
  for (; is_batched(t); t = wrapped(t)) levels.emplace_back(t->reserved, wrapped(t)->sizes[0]);
  return levels;
}

struct BatchingHooks {
  // The tensor with the batches of the levels as its first dimensions, lowest first; expanded over
  // those at which it is not batched.
  TensorBase (*expose)(const TensorBase& t, const BatchLevels& levels) = nullptr;
  // The reverse.
  TensorBase (*hide)(const TensorBase& t, const BatchLevels& levels) = nullptr;
  // The sum over the examples of the levels, also of one that is the same for all of them.
  TensorBase (*sum)(const TensorBase& t, const BatchLevels& levels) = nullptr;
  // Activates the levels on this thread until leave() is called with the result.
  void* (*enter)(const BatchLevels& levels) = nullptr;
  void (*leave)(void* entered) = nullptr;
};
LAMELLA_PRIVATE_API void set_batching_hooks(const BatchingHooks& hooks);
LAMELLA_PRIVATE_API const BatchingHooks& batching_hooks();

namespace detail {
[[noreturn]] LAMELLA_COLD void throw_batched_view();
// A batched tensor over a detached alias of the tensor that `b` wraps.
LAMELLA_NOINLINE TensorBase make_detached_batch(const lamella_tensor* b);
}  // namespace detail

// Reactivates levels that have ended, to run user code that was recorded in them.
class LevelsAgain {
 public:
  explicit LevelsAgain(const BatchLevels& levels)
      : entered_(levels.empty() ? nullptr : batching_hooks().enter(levels)) {}
  ~LevelsAgain() {
    if (entered_ != nullptr) batching_hooks().leave(entered_);
  }
  LevelsAgain(const LevelsAgain&) = delete;
  LevelsAgain& operator=(const LevelsAgain&) = delete;

 private:
  void* entered_;
};

}  // namespace lamella
