// Tensors kept for backward. Internal to Lamella.
//
// Note [Saved tensors]
//   An input is kept as it is; an output of the node as a detached alias, so that no reference
//   cycle with the node arises. Both remember the tensor's version, and unpacking fails if it has
//   changed. With hooks set on the thread, the pack hook's result is kept instead. The hook sees an
//   output with its history; if it returns that same tensor, the alias is kept.
#pragma once
#include "lamella/core/version_counter.h"
#include "lamella/layers/autograd/node.h"

namespace lamella::autograd {

// Pack and unpack hooks of this thread, newest last; kept by the Python layer. Throwing is by
// status.
struct SavedHooks {
  virtual ~SavedHooks() = default;
  // `alias` is packed where the hook gives `tensor` back.
  virtual lamella_status pack(lamella_tensor* tensor, lamella_tensor* alias,
                              lamella_object** packed) = 0;
  virtual lamella_status unpack(lamella_object* packed, lamella_tensor** tensor) = 0;
};
// Pushes and pops a pair; nullptr switches hooks off until popped. The text is shown when a tensor
// is saved while they are disabled.
LAMELLA_PRIVATE_API void push_saved_hooks(std::shared_ptr<SavedHooks> hooks);
LAMELLA_PRIVATE_API void pop_saved_hooks();
// When it ends, the thread has the pairs again that it had before, whatever hooks pushed and
// popped.
class LAMELLA_PRIVATE_API SavedHooksGuard {
 public:
  SavedHooksGuard();
  ~SavedHooksGuard();
  SavedHooksGuard(const SavedHooksGuard&) = delete;

 private:
  std::vector<std::shared_ptr<SavedHooks>> before_;
};
// Non-empty: saving raises this text if hooks are set.
LAMELLA_PRIVATE_API void disable_saved_hooks(const std::string& text);
LAMELLA_PRIVATE_API std::string saved_hooks_disabled();

// Throws for a tensor that was made in inference mode, whose writes are not counted. `op`
// begins the message, `argument` names the tensor.
LAMELLA_PRIVATE_API void check_savable(const char* op, const char* argument,
                                       const lamella_tensor* tensor);

class LAMELLA_PRIVATE_API SavedTensor {
 public:
  SavedTensor() = default;
  // output: number of the node's output that it is, -1: an input.
  SavedTensor(const TensorBase& tensor, int output) { save(tensor, output); }
  SavedTensor(SavedTensor&& other) noexcept { *this = std::move(other); }
  SavedTensor& operator=(SavedTensor&& other) noexcept;
  ~SavedTensor() { reset(); }

  LAMELLA_ALWAYS_INLINE void save(const TensorBase& tensor, int output) {
    if (LAMELLA_UNLIKELY(state_ != kEmpty || output >= 0 ||
                         (lamella_thread.modes & LAMELLA_MODE_SAVED_HOOKS) != 0)) {
      return save_slowly(tensor, output);
    }
    if (!tensor.defined()) return;
    version_ = version_of(tensor.impl());
    tensor_ = tensor;
    state_ = kTensor;
  }
  // Undefined where an undefined tensor was saved. Throws if the tensor was written meanwhile, or
  // was released. `node`: the node that saved it; may be null.
  LAMELLA_ALWAYS_INLINE TensorBase unpack(Node* node, const char* what) const {
    if (LAMELLA_LIKELY(unchanged() != nullptr)) return tensor_;
    return unpack_slowly(node, what);
  }
  // The tensor itself, borrowed, where it comes back as it was saved; NULL: ask unpack().
  LAMELLA_ALWAYS_INLINE lamella_tensor* unchanged() const {
    if (state_ != kTensor || output_ != 0) return nullptr;
    return version_of(tensor_.impl()) == version_ ? tensor_.impl() : nullptr;
  }
  bool is_empty() const { return state_ == kEmpty; }
  LAMELLA_ALWAYS_INLINE void reset() noexcept {
    if (state_ == kEmpty) return;
    tensor_.reset();
    if (LAMELLA_UNLIKELY(packed_ != nullptr)) release_packed();
    state_ = kEmpty;
  }
  // An output that is kept as an alias has the output's tangent as well.
  void set_tangent_of(lamella_tensor* output);
  // Hooks given to this one tensor, which see it as `seen`, if that is not null. Throws if it has
  // some, or if the pack hook writes into what it is given.
  void set_hooks(std::shared_ptr<SavedHooks> hooks, lamella_tensor* seen = nullptr);

 private:
  void save_slowly(const TensorBase& tensor, int output);
  TensorBase unpack_slowly(Node* node, const char* what) const;
  void release_packed() noexcept;
  enum State : uint8_t { kEmpty, kTensor, kPacked };
  TensorBase tensor_;
  uint32_t version_ = 0;
  uint32_t output_ = 0;  // the node's output that it is, counted from 1; 0: an input
  State state_ = kEmpty;
  struct Packed;
  Packed* packed_ = nullptr;
};

}  // namespace lamella::autograd
