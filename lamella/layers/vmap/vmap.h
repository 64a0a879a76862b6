// vmap: a call on batched tensors becomes one call on the tensors behind them. Internal to Lamella;
// what a library outside may use is in batch_rule.h.
//
// Note [Batched tensors and levels]
//   Each running vmap is a level of its thread: a number that is never used twice, the size of its
//   batch, and how random numbers are drawn. A batched tensor stands for one example of a level. It
//   wraps a value that has all examples, in dimension 0 always, and shows the shape of one. What it
//   wraps may be batched itself, at a lower level.
//
//   A call that has a batched tensor among its arguments meets the layer's kernel. It takes the
//   highest level among the arguments, unwraps those of that level (the others are the same for all
//   examples), and lets the operator's rule turn the call into calls on what came out. These are
//   dispatched anew, so that lower levels, autocast, tracing and autograd follow by themselves. The
//   results are wrapped again.
//
//   Autograd stands below: it sees plain tensors only. What a user asks a batched tensor about its
//   gradient is asked of the tensor behind it (Note [Batched tensors, seen from elsewhere]).
//   Gradients and tangents may be batched where the tensors that they belong to are not; expose()
//   and hide() carry levels across.
//
// Note [Which rule serves an operator]
//   1. a kernel registered for Batched (also spelled FuncTorchBatched), or for
//      FuncTorchBatchedDecomposition;
//   2. the composite kernel, run on the batched tensors, where the operator has no other kernel or
//      says `batching: composite`;
//   3. the rule that `batching:` names, or that the tags pointwise and reduction stand for;
//   4. operators whose result depends on values in a way that one shape cannot hold (tags
//      dynamic_output_shape, data_dependent_output) are refused;
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

// A number that no level had yet.
LAMELLA_PRIVATE_API uint32_t next_level_number();
// Makes the level this thread's innermost one. It must stay where it is until it is left.
LAMELLA_PRIVATE_API void enter(Level* level);
// Leaves the level, and those within it that were not left.
LAMELLA_PRIVATE_API void leave(Level* level);
// NULL: no vmap is running on this thread.
LAMELLA_PRIVATE_API Level* innermost();
// NULL: it is not running on this thread.
LAMELLA_PRIVATE_API Level* find_level(uint32_t number);
// The level of a batched tensor; throws where it has ended or belongs to another thread. `who`
// begins the message.
LAMELLA_PRIVATE_API Level& level_of(const lamella_tensor* t, const char* who);

// Levels of what was recorded under a vmap, brought back for its backward.
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

// `value` as one example of the level; its dimension 0 is the batch. Takes a reference over.
LAMELLA_PRIVATE_API TensorBase make_batched(TensorBase value, uint32_t level);
// After a write: shape, dtype and flags of a batched tensor are again those of what it wraps.
LAMELLA_PRIVATE_API void refresh(lamella_tensor* t);
// Wraps another value at the same level, for operators that change the shape of their argument.
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

// Called once for each operator that is served by the loop; a failure of it fails the call. NULL
// turns the warnings off.
using WarningHook = lamella_status (*)(const char* text);
LAMELLA_PRIVATE_API void set_warning_hook(WarningHook hook);

// Registers the layer's kernels.
void register_layer();

}  // namespace lamella::vmap
