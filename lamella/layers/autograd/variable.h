// The autograd metadata of a tensor. Internal to Lamella.
//
// Note [A tensor's history]
//   A tensor without gradients has no metadata. `requires_grad` is a flag and a key bit in the
//   tensor itself; everything else is in an AutogradMeta that the tensor owns: the node that made
//   it, or, for a leaf, its gradient and the node that accumulates it.
//
//   A base counts in `history` how often it was rebased, that is, given another node because it or
//   a view of it was written. A view remembers the count at which its own node was made; if the
//   base's count has changed, gradient_edge() gives the view a new node, by as_strided of the base.
#pragma once
#include "lamella/core/wrapper.h"
#include "lamella/layers/autograd/node.h"

namespace lamella::autograd {

class LeafNode;

struct AutogradMeta {
  NodePtr grad_fn;                    // null: a leaf
  uint32_t output = 0;                // which of grad_fn's
  uint32_t history = 0;               // Note [A tensor's history]
  LeafNode* leaf = nullptr;           // owned, atomic: made when first needed
  lamella_tensor* grad = nullptr;     // owned; guarded by grad_lock()
  lamella_tensor* tangent = nullptr;  // owned; forward mode
  // Hooks that run after a leaf's gradient was accumulated.
  HookList<NodeHook>* post_accumulate = nullptr;
  bool retains_grad = false;
  bool of_function = false;  // see set_function_history()
};

// Accumulates into the grad of a leaf. The leaf and the graphs that lead to it own this node; it
// does not own the leaf.
class LAMELLA_PRIVATE_API LeafNode final : public Node {
 public:
  explicit LeafNode(const TensorBase& variable) : Node(nullptr, 0), variable_(variable) {
    add_output(variable.impl());
  }
  lamella_status apply(lamella_tensor* const* grads, lamella_tensor** results,
                       WantedEdges wanted) override;
  // Adds a gradient (owned by the callee) to the leaf's.
  lamella_status accumulate(TensorBase grad);
  std::string name() const override { return "AccumulateGrad"; }
  bool is_leaf() const override { return true; }
  // Undefined if it is gone.
  TensorBase variable() const { return variable_.lock(); }

 protected:
  void deallocate() noexcept override { delete this; }

 private:
  WeakTensorRef variable_;
};

// Note [A node in the place of metadata]
//   Most results of a call need no metadata but their node, of which they are output 0. The
//   tensor's slot then holds an owned pointer to the node itself, tagged in its lowest bit.
inline Node* bare_node(void* slot) {
  auto bits = reinterpret_cast<uintptr_t>(slot);
  return (bits & 1) != 0 ? reinterpret_cast<Node*>(bits & ~uintptr_t{1}) : nullptr;
}
inline Node* bare_node(const lamella_tensor* t) {
  return bare_node(__atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE));
}
// NULL if there is none, or only a bare node.
inline AutogradMeta* meta_of(const lamella_tensor* t) {
  void* slot = __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
  return (reinterpret_cast<uintptr_t>(slot) & 1) != 0 ? nullptr : static_cast<AutogradMeta*>(slot);
}
// Makes it if there is none yet; a bare node moves into it.
AutogradMeta* ensure_meta(lamella_tensor* t);

// A batched tensor has the flags of the tensor that it wraps. The functions below work on the
// tensor behind a batched one: Note [Batched tensors, seen from elsewhere].
inline void show_gradient_bits(lamella_tensor* t) {
  constexpr uint32_t shown = LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_TANGENT;
  if (!is_batched(t)) return;
  show_gradient_bits(wrapped(t));
  t->flags = (t->flags & ~shown) | (wrapped(t)->flags & shown);
}

// Whether calls on the tensor are recorded (in grad mode).
bool is_stale_view(const lamella_tensor* t);
inline bool requires_grad(const lamella_tensor* t) {
  if ((t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0) return true;
  // Only the key bit is set: a view whose base may have been written with gradients since.
  return (t->key_set & kRequiresGradBits) != 0 && is_stale_view(t);
}
// The same, also of a batched tensor.
inline bool any_requires_grad(lamella_tensor* t) { return requires_grad(behind_levels(t)); }
// Throws for a dtype that cannot require gradients, and for `false` on a tensor that is not a leaf.
LAMELLA_PRIVATE_API void set_leaf_requires_grad(lamella_tensor* t, bool value);
// A leaf: no node made it.
LAMELLA_PRIVATE_API bool is_leaf(lamella_tensor* t);

// Where the tensor's gradient goes; empty if it needs none. Brings views up to date.
LAMELLA_PRIVATE_API Edge gradient_edge(lamella_tensor* t);
// The node that made the tensor; null for leaves. Brings views up to date.
LAMELLA_PRIVATE_API NodePtr grad_fn(lamella_tensor* t);
// The leaf's accumulation node, made at the first request.
LAMELLA_PRIVATE_API NodePtr leaf_node(lamella_tensor* t);

// Makes the tensor an output of a node that has that output already.
void attach(lamella_tensor* t, Edge edge);
// Takes ownership of the node that made the fresh tensor as its output 0: Note [A node in the place
// of metadata].
inline void attach_bare(lamella_tensor* t, Node* node) {
  t->autograd = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(node) | 1);
  t->flags |= LAMELLA_TENSOR_REQUIRES_GRAD;
  t->key_set |= kRequiresGradBits;
}
// Makes a fresh tensor output of the node (as its next output).
LAMELLA_PRIVATE_API void set_history(lamella_tensor* t, const NodePtr& node);
// The same for what a custom function returned. A view of something else has two histories then,
// the function's and its base's, so writing it in place is an error, and so is using it after its
// base was written.
LAMELLA_PRIVATE_API void set_function_history(lamella_tensor* t, const NodePtr& node);
// The same for a tensor that was written in place: the base of a view gets a CopySlices node.
// `edge`: which edge of the node leads to what the tensor was before; -1: none does.
LAMELLA_PRIVATE_API void rebase_history(lamella_tensor* t, const NodePtr& node, int edge);
// Throws if the tensor must not be written in place while gradients are recorded. `op` begins the
// message, `argument` names it.
LAMELLA_PRIVATE_API void check_inplace(const char* op, const char* argument, lamella_tensor* t);
// Detaches the tensor from its history and its tangent in place. Throws for views.
LAMELLA_PRIVATE_API void detach_in_place(lamella_tensor* t);

// The gradient; undefined if there is none. Returned owned, since another thread may replace it.
LAMELLA_PRIVATE_API TensorBase grad(lamella_tensor* t);
// Throws where shape, dtype or device differ. An undefined tensor removes the gradient.
LAMELLA_PRIVATE_API void set_grad(lamella_tensor* t, const TensorBase& grad);
LAMELLA_PRIVATE_API void retain_grad(lamella_tensor* t);
LAMELLA_PRIVATE_API bool retains_grad(lamella_tensor* t);

// Where the gradient of a node's saved output goes: to the node, or for a write into a view to the
// node of its base, so that the write runs once.
LAMELLA_PRIVATE_API Edge edge_of_output(Node* node, uint32_t output, lamella_tensor* saved);

// Hooks on the tensor's gradient. Returns an id for the removal. Throws if it needs no gradient.
LAMELLA_PRIVATE_API uint64_t add_tensor_hook(lamella_tensor* t, const lamella_tensor_hook& hook);
// False: the tensor has no hook of this number.
bool remove_tensor_hook(lamella_tensor* t, uint64_t id);
// Whether a hook runs when a gradient reaches the tensor or was accumulated into it.
LAMELLA_PRIVATE_API bool has_hooks(const lamella_tensor* t);
// Hooks that run after the gradient of a leaf was accumulated (values: none).
LAMELLA_PRIVATE_API uint64_t add_post_accumulate_hook(lamella_tensor* t,
                                                      std::unique_ptr<NodeHook> hook);
LAMELLA_PRIVATE_API void remove_post_accumulate_hook(lamella_tensor* t, uint64_t id);

// Forward mode: the tangent (undefined: none) and its change. Throws where shapes differ. A dense
// tensor's tangent is laid out in memory as it is, so that views of both can be taken alike.
LAMELLA_PRIVATE_API TensorBase tangent(const lamella_tensor* t);
LAMELLA_PRIVATE_API void set_tangent(lamella_tensor* t, const TensorBase& tangent);
// Opens the level: views made from then on are recorded, so that they share their base's tangent.
LAMELLA_PRIVATE_API void begin_forward_level();
// Removes the tangents of all tensors.
LAMELLA_PRIVATE_API void end_forward_level();

}  // namespace lamella::autograd
