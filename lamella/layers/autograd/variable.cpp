// Gradient bookkeeping of tensors: metadata, leaves, hooks.
#include "lamella/layers/autograd/variable.h"

#include <algorithm>
#include <mutex>

#include "lamella/api/functions.h"
#include "lamella/core/detach_hook.h"
#include "lamella/core/dual_hook.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/memory_pool.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/record.h"

namespace lamella::autograd {
namespace {

constexpr int kMetaClass = detail::pool_class(sizeof(AutogradMeta));

// The lock for a tensor's grad, chosen by address from a few locks; each is held only briefly.
struct GradLocks {
  GradLocks() {
    for (std::mutex& mutex : mutexes) fork::hold(fork::Level::kLayers, &mutex);
  }
  std::mutex mutexes[16];
} grad_locks;
std::mutex& grad_lock(const lamella_tensor* t) {
  return grad_locks.mutexes[(reinterpret_cast<uintptr_t>(t) >> 6) & 15];
}

void free_meta(AutogradMeta* meta) noexcept {
  meta->~AutogradMeta();
  detail::pool_free(meta, kMetaClass);
}

void release_autograd(lamella_tensor* t) {
  void* slot = std::exchange(t->autograd, nullptr);
  if (slot == nullptr) return;
  if (Node* bare = bare_node(slot)) {
    bare->release();
    return;
  }
  auto* meta = static_cast<AutogradMeta*>(slot);
  if (meta->leaf != nullptr) meta->leaf->release();
  if (meta->grad != nullptr) detail::release(meta->grad);
  if (meta->tangent != nullptr) detail::release(meta->tangent);
  delete meta->post_accumulate;
  free_meta(meta);
}

}  // namespace

void register_tensor_hooks() {
  set_tensor_hooks({&release_autograd, nullptr});
  set_expose_dual(&expose_with_tangent);
  detach_history = &detach_in_place;
}

AutogradMeta* ensure_meta(lamella_tensor* t) {
  if (AutogradMeta* there = meta_of(t)) return there;
  auto* fresh = new (detail::pool_allocate(kMetaClass)) AutogradMeta;
  void* slot = __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
  while (true) {
    Node* bare = bare_node(slot);
    if (slot != nullptr && bare == nullptr) break;  // another thread was faster
    if (bare != nullptr) fresh->grad_fn = NodePtr::borrow(bare);
    if (__atomic_compare_exchange_n(&t->autograd, &slot, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      if (bare != nullptr) bare->release();  // the slot's own reference
      return fresh;
    }
    fresh->grad_fn = NodePtr();
  }
  free_meta(fresh);
  return static_cast<AutogradMeta*>(slot);
}

void set_leaf_requires_grad(lamella_tensor* t, bool value) {
  if (is_batched(t)) {
    set_leaf_requires_grad(wrapped(t), value);
    return show_gradient_bits(t);
  }
  if (value) {
    if (requires_grad(t)) return;
    // Allowed inside inference mode so that modules can be built there, although their parameters
    // cannot be trained outside of it.
    LAMELLA_CHECK((t->flags & LAMELLA_TENSOR_INFERENCE) == 0 ||
                      (lamella_modes() & LAMELLA_MODE_INFERENCE) != 0,
                  "requires_grad_: expected a tensor made outside of inference mode");
    set_requires_grad(static_cast<TensorImpl*>(t), true);
    return;
  }
  LAMELLA_CHECK(is_leaf(t), "requires_grad_: expected a leaf, got a tensor that ",
                grad_fn(t)->name(), " made; use detach() for a tensor without its history");
  set_requires_grad(static_cast<TensorImpl*>(t), false);
}

bool is_leaf(lamella_tensor* t) {
  t = behind_levels(t);
  if (is_stale_view(t)) return false;
  const Node* node = bare_node(t);
  if (AutogradMeta* meta = node == nullptr ? meta_of(t) : nullptr) node = meta->grad_fn.get();
  // A leaf that hooks have unpacked has the node of the leaf.
  return node == nullptr || node->is_leaf();
}

NodePtr grad_fn(lamella_tensor* t) {
  Edge edge = gradient_edge(t);
  return edge && !edge.node->is_leaf() ? edge.node : NodePtr();
}

NodePtr leaf_node(lamella_tensor* t) {
  AutogradMeta* meta = ensure_meta(t);
  if (LeafNode* there = __atomic_load_n(&meta->leaf, __ATOMIC_ACQUIRE)) {
    // The tensor may have gone to another device or dtype since, by its `data`.
    OutputMeta& gradient = there->mutable_output(0);
    if (LAMELLA_UNLIKELY(!gradient.fits(t))) gradient.set(t);
    return NodePtr::borrow(there);
  }
  auto* fresh = new LeafNode(TensorBase::borrow(t));
  LeafNode* expected = nullptr;
  if (!__atomic_compare_exchange_n(&meta->leaf, &expected, fresh, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    fresh->release();
    return NodePtr::borrow(expected);
  }
  return NodePtr::borrow(fresh);
}

namespace {
// Moves retain_grad() to the node that a write gave the tensor: the grad is that of the new value.
void move_retained(lamella_tensor* t, NodePtr& from, const Edge& to) {
  if (from) {
    auto& kept = from->extras().retained;
    for (size_t i = kept.size(); i-- > 0;) {
      if (kept[i].second.lock().impl() == t) kept.erase(kept.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  to.node->extras().retained.emplace_back(to.input, WeakTensorRef(TensorBase::borrow(t)));
}
}  // namespace

void attach(lamella_tensor* t, Edge edge) {
  auto* impl = static_cast<TensorImpl*>(t);
  if (LAMELLA_LIKELY(t->autograd == nullptr && impl->base == nullptr && edge.input == 0)) {
    return attach_bare(t, edge.node.unsafe_release());
  }
  AutogradMeta* meta = ensure_meta(t);
  if (LAMELLA_UNLIKELY(meta->retains_grad)) move_retained(t, meta->grad_fn, edge);
  meta->grad_fn = std::move(edge.node);
  meta->output = edge.input;
  if (LAMELLA_UNLIKELY(impl->base != nullptr)) {
    AutogradMeta* base = meta_of(impl->base);
    meta->history = base != nullptr ? base->history : 0;
  }
  impl->flags = (impl->flags | LAMELLA_TENSOR_REQUIRES_GRAD) & ~LAMELLA_TENSOR_NO_GRAD_VIEW;
  impl->key_set |= kRequiresGradBits;
}

void set_history(lamella_tensor* t, const NodePtr& node) {
  lamella_tensor* variable = behind_levels(t);
  uint32_t output = node->add_output(variable);
  attach(variable, Edge{node, output});
  show_gradient_bits(t);
}

void set_function_history(lamella_tensor* t, const NodePtr& node) {
  set_history(t, node);
  t = behind_levels(t);
  if (static_cast<TensorImpl*>(t)->base != nullptr) meta_of(t)->of_function = true;
}

// ---- Gradients ----

TensorBase grad(lamella_tensor* t) {
  if (is_batched(t)) {
    TensorBase found = grad(behind_levels(t));
    return found.defined() ? batching_hooks().hide(found, levels_of(t)) : found;
  }
  AutogradMeta* meta = meta_of(t);
  if (meta == nullptr) return TensorBase();
  std::lock_guard lock(grad_lock(t));
  return TensorBase::borrow(meta->grad);
}

void set_grad(lamella_tensor* t, const TensorBase& grad) {
  if (is_batched(t)) {
    lamella_tensor* variable = behind_levels(t);
    return set_grad(variable, grad.defined() ? batching_hooks().expose(grad, levels_of(t)) : grad);
  }
  if (grad.defined()) {
    const lamella_tensor* g = grad.impl();
    LAMELLA_CHECK(g != t, "grad: expected a tensor other than the one whose gradient it is");
    IntArrayRef sizes(t->sizes, static_cast<size_t>(t->ndim));
    LAMELLA_CHECK(grad.sizes() == sizes, "grad: expected the shape of its tensor, ", sizes,
                  ", got ", grad.sizes());
    auto dtype = static_cast<ScalarType>(t->scalar_type);
    LAMELLA_CHECK(grad.scalar_type() == dtype, "grad: expected the dtype of its tensor, ", dtype,
                  ", got ", grad.scalar_type());
    LAMELLA_CHECK(g->device_type == t->device_type && g->device_index == t->device_index,
                  "grad: expected the device of its tensor, ",
                  Device(static_cast<DeviceType>(t->device_type), t->device_index), ", got ",
                  grad.device());
  }
  AutogradMeta* meta = grad.defined() ? ensure_meta(t) : meta_of(t);
  if (meta == nullptr) return;
  TensorBase kept = grad;
  lamella_tensor* old = nullptr;
  {
    std::lock_guard lock(grad_lock(t));
    old = std::exchange(meta->grad, kept.unsafe_release());
  }
  if (old != nullptr) detail::release(old);
}

namespace {
bool is_sparse_layout(const TensorBase& t) {
  return t.impl()->layout != static_cast<uint8_t>(Layout::Strided);
}
// Whether a gradient lies in memory as the leaf does, or in order where the leaf has gaps.
bool laid_out_as(const TensorBase& g, const TensorBase& leaf) {
  if (!leaf.is_non_overlapping_and_dense()) return g.is_contiguous();
  IntArrayRef sizes = leaf.sizes();
  if (sizes != g.sizes()) return true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && leaf.strides()[d] != g.strides()[d]) return false;
  }
  return true;
}
// Whether the memory of a gradient that was handed over may be kept as it is.
bool may_steal(const TensorBase& g, const TensorBase& leaf) {
  const auto* impl = TensorImpl::of(g);
  return impl->references == 1 && impl->base == nullptr && g.is_non_overlapping_and_dense() &&
         (impl->flags & (LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG)) == 0 &&
         impl->storage != nullptr &&
         __atomic_load_n(&impl->storage->references, __ATOMIC_ACQUIRE) == 1 && laid_out_as(g, leaf);
}
}  // namespace

// Note [Accumulating]
//   The first gradient becomes the grad: as it is if it has no other reference and the leaf's
//   strides, else as a copy in those. Later ones are added to it in place; with a graph of the
//   backward, or where a dense gradient meets a sparse one, out of place.
lamella_status LeafNode::accumulate(TensorBase g) {
  TensorBase variable = variable_.lock();
  if (!variable.defined() || !g.defined()) return LAMELLA_OK;
  lamella_tensor* t = variable.impl();
  AutogradMeta* meta = ensure_meta(t);
  if (is_batched(g.impl())) {
    static constexpr char text[] =
        "backward: expected gradients that are not batched for the grad of a leaf that is not, as "
        "its grad would have to hold one for each example of vmap; use autograd.grad() in vmap, or "
        "call backward() outside of it";
    return lamella_fail(LAMELLA_ERROR, text, sizeof(text) - 1);
  }
  // Takes the present grad, or puts one where there is none. No operator runs under the lock.
  auto exchange = [&](lamella_tensor* fresh) {
    std::unique_lock lock(grad_lock(t), std::defer_lock);
    if (!LAMELLA_ONE_THREAD) lock.lock();
    if (fresh == nullptr || meta->grad == nullptr) return std::exchange(meta->grad, fresh);
    return fresh;
  };
  lamella_tensor* old = exchange(nullptr);
  try {
    if (old == nullptr && !grad_enabled() && !may_steal(g, variable)) {
      Tensor given(g);
      if (is_sparse_layout(g)) {
        g = given.clone();
      } else {
        Tensor copy = variable.is_non_overlapping_and_dense()
                          ? given.new_empty_strided(variable.sizes(), variable.strides())
                          : given.new_empty(variable.sizes());
        copy.copy_(given);
        g = copy;
      }
    }
    while (true) {
      if (old != nullptr) {
        Tensor sum{TensorBase::borrow(old)};
        if (grad_enabled() || (is_sparse_layout(sum) && !is_sparse_layout(g))) {
          sum = sum + Tensor(g);
        } else {
          sum.add_(Tensor(g));
        }
        g = sum;
        detail::release(std::exchange(old, nullptr));
      }
      lamella_tensor* mine = g.unsafe_release();
      if (exchange(mine) != mine) break;
      // Another thread has put one there meanwhile.
      g = TensorBase::adopt(mine);
      old = exchange(nullptr);
    }
  } catch (...) {
    if (old != nullptr && exchange(old) == old) detail::release(old);
    return detail::status_of_current_exception();
  }
  if (LAMELLA_UNLIKELY(meta->post_accumulate != nullptr)) {
    lamella_tensor* value = t;
    for (auto& [id, hook] : meta->post_accumulate->all()) {
      lamella_status status = hook->run(&value, 1, nullptr, 0);
      if (status != LAMELLA_OK) return status;
    }
  }
  return LAMELLA_OK;
}

lamella_status LeafNode::apply(lamella_tensor* const* grads, lamella_tensor**, WantedEdges) {
  const NodeExtras* extras = extras_or_null();
  if (extras != nullptr && !extras->post_hooks.empty())
    return accumulate(TensorBase::borrow(grads[0]));
  // The list of gradients is the engine's, which needs this one no longer.
  auto& grad = const_cast<lamella_tensor*&>(grads[0]);
  return accumulate(TensorBase::adopt(std::exchange(grad, nullptr)));
}

void retain_grad(lamella_tensor* t) {
  t = behind_levels(t);
  LAMELLA_CHECK(requires_grad(t), "retain_grad: expected a tensor that requires gradients");
  if (is_leaf(t)) return;
  Edge edge = gradient_edge(t);
  AutogradMeta* meta = ensure_meta(t);
  if (meta->retains_grad) return;
  meta->retains_grad = true;
  edge.node->extras().retained.emplace_back(edge.input, WeakTensorRef(TensorBase::borrow(t)));
}
bool retains_grad(lamella_tensor* t) {
  t = behind_levels(t);
  AutogradMeta* meta = meta_of(t);
  return meta != nullptr && meta->retains_grad && !is_leaf(t);
}

// ---- Hooks ----

namespace {
// A hook on a batched tensor sees gradients that are batched as the tensor is.
struct BatchedHook {
  lamella_tensor_hook hook;
  BatchLevels levels;

  static lamella_status call(void* context, lamella_tensor* grad, lamella_tensor** replacement) {
    try {
      auto* self = static_cast<BatchedHook*>(context);
      LevelsAgain again(self->levels);
      TensorBase seen = batching_hooks().hide(TensorBase::borrow(grad), self->levels);
      lamella_tensor* other = nullptr;
      lamella_status status = self->hook.call(self->hook.context, seen.impl(), &other);
      if (status != LAMELLA_OK || other == nullptr) return status;
      *replacement =
          batching_hooks().expose(TensorBase::adopt(other), self->levels).unsafe_release();
      return LAMELLA_OK;
    } catch (...) {
      return detail::status_of_current_exception();
    }
  }
  static void dispose(void* context) {
    auto* self = static_cast<BatchedHook*>(context);
    if (self->hook.dispose != nullptr) self->hook.dispose(self->hook.context);
    delete self;
  }
};
}  // namespace

uint64_t add_tensor_hook(lamella_tensor* t, const lamella_tensor_hook& hook) {
  if (is_batched(t)) {
    LAMELLA_CHECK(any_requires_grad(t), "register_hook: expected a tensor that requires gradients");
    auto* around = new BatchedHook{hook, levels_of(t)};
    return add_tensor_hook(behind_levels(t), {&BatchedHook::call, &BatchedHook::dispose, around});
  }
  LAMELLA_CHECK(requires_grad(t), "register_hook: expected a tensor that requires gradients");
  Edge edge = gradient_edge(t);
  uint64_t id = next_hook_id();
  edge.node->extras().tensor_hooks.add(id, std::make_shared<Hook>(id, hook, edge.input));
  return id;
}
bool remove_tensor_hook(lamella_tensor* t, uint64_t id) {
  Edge edge = gradient_edge(t);
  NodeExtras* extras = edge ? edge.node->extras_or_null() : nullptr;
  return extras != nullptr && extras->tensor_hooks.remove(id);
}

bool has_hooks(const lamella_tensor* t) {
  void* slot = __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
  if (slot == nullptr) return false;
  Node* node = bare_node(slot);
  if (node == nullptr) {
    AutogradMeta* meta = static_cast<AutogradMeta*>(slot);
    if (meta->post_accumulate != nullptr && !meta->post_accumulate->empty()) return true;
    node = meta->grad_fn ? meta->grad_fn.get() : __atomic_load_n(&meta->leaf, __ATOMIC_ACQUIRE);
  }
  const NodeExtras* extras = node == nullptr ? nullptr : node->extras_or_null();
  return extras != nullptr &&
         !(extras->tensor_hooks.empty() && extras->pre_hooks.empty() && extras->post_hooks.empty());
}

uint64_t add_post_accumulate_hook(lamella_tensor* t, std::unique_ptr<NodeHook> hook) {
  t = behind_levels(t);
  LAMELLA_CHECK(requires_grad(t) && is_leaf(t),
                "register_post_accumulate_grad_hook: expected a leaf that requires gradients");
  AutogradMeta* meta = ensure_meta(t);
  if (meta->post_accumulate == nullptr) meta->post_accumulate = new HookList<NodeHook>;
  static_cast<void>(leaf_node(t)->extras());  // so that the leaf waits for all of its gradients
  uint64_t id = next_hook_id();
  meta->post_accumulate->add(id, std::move(hook));
  return id;
}
void remove_post_accumulate_hook(lamella_tensor* t, uint64_t id) {
  t = behind_levels(t);
  AutogradMeta* meta = meta_of(t);
  if (meta != nullptr && meta->post_accumulate != nullptr) meta->post_accumulate->remove(id);
}

// ---- Forward mode ----

TensorBase tangent(const lamella_tensor* t) {
  if (LAMELLA_UNLIKELY(is_batched(t))) {
    TensorBase found = tangent(behind_levels(const_cast<lamella_tensor*>(t)));
    return found.defined() ? batching_hooks().hide(found, levels_of(t)) : found;
  }
  AutogradMeta* meta = meta_of(t);
  return meta == nullptr ? TensorBase() : TensorBase::borrow(meta->tangent);
}

namespace {
// Tensors that have tangents, so that they lose them when the level is closed. Those that are gone
// are taken off each time that the list has doubled.
struct Duals {
  std::mutex mutex;
  std::vector<WeakTensorRef> tensors;
  size_t sweep_at = 64;
};
Duals& duals() {
  static Duals* all = new Duals;
  return *all;
}
void remember_dual(lamella_tensor* t) {
  Duals& all = duals();
  std::lock_guard lock(all.mutex);
  if (all.tensors.size() >= all.sweep_at) {
    auto gone = [](const WeakTensorRef& weak) { return weak.expired(); };
    all.tensors.erase(std::remove_if(all.tensors.begin(), all.tensors.end(), gone),
                      all.tensors.end());
    all.sweep_at = std::max<size_t>(64, 2 * all.tensors.size());
  }
  all.tensors.emplace_back(TensorBase::borrow(t));
}

// True if both tensors have the same element offsets relative to their first element.
bool laid_out_alike(const lamella_tensor* a, const lamella_tensor* b) {
  for (int32_t d = 0; d < a->ndim; ++d) {
    if (a->sizes[d] > 1 && a->strides[d] != b->strides[d]) return false;
  }
  return true;
}
TensorBase laid_out_as(const lamella_tensor* t, const TensorBase& tangent) {
  if ((t->flags & LAMELLA_TENSOR_DENSE) == 0 || t->numel == 0 ||
      laid_out_alike(t, tangent.impl())) {
    return tangent;
  }
  Tensor given{tangent};
  if (is_batched(tangent.impl()))
    return Tensor(zeros_over(t, levels_of(tangent.impl()))).copy_(given);
  auto n = static_cast<size_t>(t->ndim);
  return given.new_empty_strided({t->sizes, n}, {t->strides, n}).copy_(given);
}
}  // namespace

TensorBase zeros_over(const lamella_tensor* t, const BatchLevels& levels) {
  const IntArrayRef example(t->sizes, static_cast<size_t>(t->ndim));
  const IntArrayRef order(t->strides, static_cast<size_t>(t->ndim));
  std::vector<int64_t> sizes, strides;
  int64_t extent = 1;
  for (size_t d = 0; d < example.size(); ++d) {
    extent += example[d] > 0 ? (example[d] - 1) * order[d] : 0;
  }
  for (const auto& level : levels) {  // the lowest one is dimension 0
    sizes.insert(sizes.begin(), level.second);
    strides.insert(strides.begin(), extent);
    extent *= level.second;
  }
  sizes.insert(sizes.end(), example.begin(), example.end());
  strides.insert(strides.end(), order.begin(), order.end());
  Tensor zeros{
      make_empty_strided(sizes, strides, static_cast<ScalarType>(t->scalar_type),
                         Device(static_cast<DeviceType>(t->device_type), t->device_index))};
  zeros.zero_();
  return levels.empty() ? TensorBase(zeros) : batching_hooks().hide(zeros, levels);
}

void end_forward_level() {
  forget_views();
  std::vector<WeakTensorRef> ended;
  {
    std::lock_guard lock(duals().mutex);
    ended.swap(duals().tensors);
  }
  for (const WeakTensorRef& weak : ended) {
    TensorBase tensor = weak.lock();
    if (tensor.defined()) set_tangent(tensor.impl(), TensorBase());
  }
}

void set_tangent(lamella_tensor* t, const TensorBase& tangent) {
  if (LAMELLA_UNLIKELY(is_batched(t))) {
    set_tangent(behind_levels(t),
                tangent.defined() ? batching_hooks().expose(tangent, levels_of(t)) : tangent);
    return show_gradient_bits(t);
  }
  if (tangent.defined()) {
    IntArrayRef sizes(t->sizes, static_cast<size_t>(t->ndim));
    LAMELLA_CHECK(tangent.sizes() == sizes,
                  "make_dual: expected 'tangent' to have the shape of 'tensor', ", sizes, ", got ",
                  tangent.sizes());
    auto dtype = static_cast<ScalarType>(t->scalar_type);
    LAMELLA_CHECK(tangent.scalar_type() == dtype,
                  "make_dual: expected 'tangent' to have the dtype of 'tensor', ", dtype, ", got ",
                  tangent.scalar_type());
  }
  AutogradMeta* meta = tangent.defined() ? ensure_meta(t) : meta_of(t);
  if (meta == nullptr) return;
  TensorBase kept = tangent.defined() ? laid_out_as(t, tangent) : tangent;
  if (kept.defined() && meta->tangent == nullptr) remember_dual(t);
  lamella_tensor* old = std::exchange(meta->tangent, kept.unsafe_release());
  if (old != nullptr) detail::release(old);
  auto* impl = static_cast<TensorImpl*>(t);
  if (tangent.defined()) {
    impl->flags |= LAMELLA_TENSOR_TANGENT;
    impl->key_set |= kTangentBits;
  } else {
    impl->flags &= ~static_cast<uint32_t>(LAMELLA_TENSOR_TANGENT);
    impl->key_set &= ~kTangentBits;
  }
}

}  // namespace lamella::autograd
