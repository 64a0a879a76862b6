// vmap: a call on batched tensors becomes one call on the tensors behind them. Internal to Lamella;
// what a library outside may use is in batch_rule.h.
//
// Note [Batched tensors and levels]
//   Each running vmap is a level of its thread: a number that is never reused, the size of its
//   batch, and how random numbers are drawn. A batched tensor stands for one example of a level. It
//   wraps a tensor that holds all examples, always along dimension 0, and has the shape of one
//   example. The wrapped tensor may itself be batched, at a lower level.
//
//   A call with a batched argument reaches the layer's kernel. The kernel takes the highest level
//   among the arguments, unwraps the arguments of that level (the others are the same for all
//   examples), and lets the operator's rule turn the call into calls on the unwrapped tensors.
//   These are dispatched anew, so lower levels, autocast, tracing and autograd handle them as any
//   other calls. The results are wrapped again.
//
//   Autograd comes below this layer and sees only plain tensors. Functions that query a tensor's
//   gradient state look at the tensor behind a batched one (Note [Batched tensors, seen from
//   elsewhere] in lamella/core/wrapper.h). Gradients and tangents may be batched where the tensors
//   that they belong to are not; expose() and hide() convert between the two forms.
//
// Note [Which rule serves an operator]
//   1. a kernel registered for Batched (also spelled FuncTorchBatched), or for
//      FuncTorchBatchedDecomposition;
//   2. the composite kernel, run on the batched tensors, where the operator has no other kernel or
//      says `batching: composite`;
//   3. the rule that `batching:` names, or that the tags pointwise and reduction stand for;
//   4. an error, for operators whose results may differ in shape between examples or are no tensors
//      (tags dynamic_output_shape, data_dependent_output);
//   5. the loop over the examples, which warns once for each operator that it is slow.
#pragma once
#include <cstdint>

#include "lamella/core/wrapper.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella::vmap {

inline constexpr uint64_t kBatchedBit =
    lamella::detail::functionality_bit(lamella::detail::Functionality::Batched);
inline constexpr uint64_t kModeBit =
    lamella::detail::functionality_bit(lamella::detail::Functionality::VmapMode);

// ---- Levels ----

enum class Randomness : uint8_t {
  kError,      // drawing is an error
  kDifferent,  // each example draws its own numbers
  kSame,       // all examples see the same numbers
};

struct Level {
  uint32_t number = 0;
  Randomness randomness = Randomness::kError;
  int64_t size = 0;
  Level* outer = nullptr;
};

// A number that no level has had before.
LAMELLA_PRIVATE_API uint32_t next_level_number();
// Makes the level this thread's innermost one. The object must not move until leave().
LAMELLA_PRIVATE_API void enter(Level* level);
// Leaves the level and all levels inside it.
LAMELLA_PRIVATE_API void leave(Level* level);
// NULL: no vmap is running on this thread.
LAMELLA_PRIVATE_API Level* innermost();
// NULL: no level of this number is running on this thread.
LAMELLA_PRIVATE_API Level* find_level(uint32_t number);
// The level of a batched tensor; throws if it has ended or belongs to another thread. `who`, the
// caller's name, begins the message.
LAMELLA_PRIVATE_API Level& level_of(const lamella_tensor* t, const char* who);

// Enters a level again for its lifetime: backward of a call that was recorded under a vmap.
class LAMELLA_PRIVATE_API Reentry {
 public:
  Reentry(uint32_t number, int64_t size);
  ~Reentry();
  Reentry(const Reentry&) = delete;
  Reentry& operator=(const Reentry&) = delete;

 private:
  Level level_;
  bool entered_;
};

// ---- Batched tensors ----

using lamella::is_batched;
using lamella::wrapped;
// The number of the level at which a batched tensor is batched.
inline uint32_t level_number(const lamella_tensor* t) { return t->reserved; }

// A batched tensor of the level over `value`, whose dimension 0 is the batch.
LAMELLA_PRIVATE_API TensorBase make_batched(TensorBase value, uint32_t level);
// After a write: updates the shape, dtype and flags of a batched tensor from the wrapped tensor.
LAMELLA_PRIVATE_API void refresh(lamella_tensor* t);
// Makes `t` wrap another value at its level, for operators that change their argument's shape.
LAMELLA_PRIVATE_API void replace(lamella_tensor* t, TensorBase value);

// The tensor with the batch of `level` as its dimension 0, expanded over it if it is the same for
// all examples. The result may be batched at other levels.
LAMELLA_PRIVATE_API TensorBase expose(const TensorBase& t, const Level& level);
// The reverse: dimension 0 becomes the batch of `level`.
LAMELLA_PRIVATE_API TensorBase hide(const TensorBase& t, uint32_t level);
// Whether the tensor is batched at the level, directly or further inside.
LAMELLA_PRIVATE_API bool has_level(const lamella_tensor* t, uint32_t level);
// The same tensor, batched at all levels that run on this thread.
LAMELLA_PRIVATE_API TensorBase batch_over_all(const TensorBase& t);

// Registers the layer's kernels.
void register_layer();

}  // namespace lamella::vmap
