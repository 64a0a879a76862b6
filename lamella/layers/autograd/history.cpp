// In-place writes and views: which tensors' histories a write changes, and its gradient.
#include <mutex>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/variable.h"

namespace lamella::autograd {
namespace {

std::vector<int64_t> list_of(const int64_t* values, int32_t n) { return {values, values + n}; }

// Shape, strides and offset of a tensor, in elements of its own dtype.
struct Geometry {
  std::vector<int64_t> sizes, strides;
  int64_t offset;
  ScalarType dtype;
  uint32_t lazy;  // LAMELLA_TENSOR_CONJ and LAMELLA_TENSOR_NEG
  explicit Geometry(const lamella_tensor* t)
      : sizes(list_of(t->sizes, t->ndim)),
        strides(list_of(t->strides, t->ndim)),
        offset(t->storage_offset),
        dtype(static_cast<ScalarType>(t->scalar_type)),
        lazy(t->flags & (LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG)) {}
};

// A view of a dense `base` with the dtype of one of its views: real for complex tensors, and the
// reverse. Recorded as the operators that it calls.
Tensor as_dtype(const Tensor& base, ScalarType dtype) {
  if (base.scalar_type() == dtype) return base;
  if (base.is_complex()) return view_as_real(base.is_conj() ? _conj(base) : base);
  return view_as_complex(base.as_strided({base.numel() / 2, 2}, {2, 1}, base.storage_offset()));
}
// The view of a base, at an offset that may not be the view's own.
Tensor as_view(const Tensor& base, const Geometry& view, int64_t offset) {
  Tensor made = as_dtype(base, view.dtype).as_strided(view.sizes, view.strides, offset);
  if (made.is_conj() != ((view.lazy & LAMELLA_TENSOR_CONJ) != 0)) made = _conj(made);
  if (made.is_neg() != ((view.lazy & LAMELLA_TENSOR_NEG) != 0)) made = _neg_view(made);
  return made;
}
int64_t offset_in(ScalarType dtype, const Geometry& base) {
  if (base.dtype == dtype) return base.offset;
  return is_complex(base.dtype) ? base.offset * 2 : base.offset / 2;
}

// The gradient of a base that was written through a view: elements that were not written keep their
// gradient; the gradient of the written part goes through the node of the write.
class CopySlices final : public Node {
 public:
  CopySlices(lamella_tensor* base, const lamella_tensor* view, Edge before, NodePtr write,
             int write_edge)
      : Node(nullptr, 0),
        base_(base),
        view_(view),
        write_(std::move(write)),
        write_edge_(write_edge),
        edges_(1 + write_->edge_count()) {
    place_edges(edges_.data(), static_cast<uint32_t>(edges_.size()));
    set_edge(0, std::move(before));
    for (uint32_t i = 0; i < write_->edge_count(); ++i) {
      if (static_cast<int>(i) != write_edge_) set_edge(i + 1, write_->edge(i));
    }
    raise_rank(write_->rank());  // Note [The order of side effects]
    write_->extras().slices = this;
  }
  ~CopySlices() override { write_->extras().slices = nullptr; }
  // The gradient of the base for that of the part which was written.
  Tensor spread(const Tensor& grad) const {
    Tensor whole =
        lamella::empty_strided(base_.sizes, base_.strides, grad.options().dtype(base_.dtype))
            .zero_();
    as_view(whole, view_, view_.offset - offset_in(view_.dtype, base_)).copy_(grad);
    return whole;
  }
  std::string name() const override { return "CopySlices"; }
  void release_saved() noexcept override { write_->release_saved(); }
  bool keeps_something() const noexcept override { return write_->keeps_something(); }
  lamella_status apply(lamella_tensor* const* grads, lamella_tensor** results,
                       WantedEdges wanted) override {
    if (grads[0] == nullptr) return LAMELLA_OK;
    std::vector<lamella_tensor*> inner(write_->edge_count(), nullptr);
    lamella_status status = LAMELLA_OK;
    try {
      if (given_up()) throw_given_up(write_->name());
      Tensor grad{TensorBase::borrow(grads[0])};
      Tensor whole = grad.new_empty_strided(base_.sizes, base_.strides);
      whole.copy_(grad);
      int64_t offset = view_.offset - offset_in(view_.dtype, base_);
      Tensor slice = as_view(whole, view_, offset);
      Tensor slice_grad = slice.clone();
      lamella_tensor* in = slice_grad.impl();
      // The write's own edge to what was there before leads to edge 0.
      std::unique_ptr<bool[]> asked(new bool[inner.size()]);
      for (size_t i = 0; i < inner.size(); ++i) {
        bool before = static_cast<int>(i) == write_edge_;
        asked[i] = wanted[before ? 0 : static_cast<uint32_t>(i + 1)];
      }
      status = write_->apply(&in, inner.data(), WantedEdges{asked.get()});
      if (status == LAMELLA_OK) {
        Tensor written;
        if (write_edge_ >= 0) {
          written = Tensor{
              TensorBase::adopt(std::exchange(inner[static_cast<size_t>(write_edge_)], nullptr))};
        }
        if (needs(0) && wanted[0]) {
          if (written.defined()) {
            slice.copy_(written);
          } else {
            slice.zero_();
          }
          results[0] = whole.unsafe_release();
        }
        for (size_t i = 0; i < inner.size(); ++i) results[i + 1] = std::exchange(inner[i], nullptr);
      }
    } catch (...) {
      status = detail::status_of_current_exception();
    }
    for (lamella_tensor* one : inner) {
      if (one != nullptr) detail::release(one);
    }
    return status;
  }

 protected:
  void deallocate() noexcept override { delete this; }

 private:
  Geometry base_, view_;
  NodePtr write_;
  int write_edge_;
  std::vector<Edge> edges_;
};

// The gradient of the part of a base that was written, on its way to the base's node.
class SliceGrad final : public Node {
 public:
  explicit SliceGrad(CopySlices* slices) : Node(nullptr, 0) {
    place_edges(&edge_, 1);
    set_edge(0, Edge{NodePtr::borrow(slices), 0});
  }
  std::string name() const override { return "SliceBackward"; }
  lamella_status apply(lamella_tensor* const* grads, lamella_tensor** results,
                       WantedEdges) override {
    if (grads[0] == nullptr) return LAMELLA_OK;
    return detail::guarded([&] {
      const auto* slices = static_cast<const CopySlices*>(edge_.node.get());
      results[0] = slices->spread(Tensor{TensorBase::borrow(grads[0])}).unsafe_release();
    });
  }

 protected:
  void deallocate() noexcept override { delete this; }

 private:
  Edge edge_;
};

fork::Held<std::mutex> view_lock{fork::Level::kLayers};

// Gives a view whose base was rebased a new node, which computes it from the base.
void refresh(lamella_tensor* t) {
  auto* impl = static_cast<TensorImpl*>(t);
  if (AutogradMeta* meta = meta_of(t); meta != nullptr && meta->of_function && is_stale_view(t)) {
    throw Error(str(meta->grad_fn->name(),
                    ": expected the view that it returned to be used before its base is written in "
                    "place, since its gradient would be lost; return a copy of it"));
  }
  Geometry view(t);
  Edge edge;
  {
    GradGuard grad(true);
    // The operators must be recorded whatever modes the caller has set.
    ExcludedKeysGuard above(lamella_thread.excluded &
                            ~(autograd_dispatch_keyset.raw_repr() & ~kTangentBits));
    Tensor base{TensorBase::borrow(impl->base)};
    Tensor made = as_view(base, view, view.offset);
    edge = gradient_edge(made.impl());
  }
  std::lock_guard lock(view_lock);
  if (is_stale_view(t)) attach(t, std::move(edge));
}

}  // namespace

Edge edge_of_output(Node* node, uint32_t output, lamella_tensor* saved) {
  NodeExtras* extras = node->extras_or_null();
  if (extras == nullptr || extras->slices == nullptr) return Edge{NodePtr::borrow(node), output};
  NodePtr made = NodePtr::adopt(new SliceGrad(static_cast<CopySlices*>(extras->slices)));
  uint32_t input = made->add_output(saved);
  return Edge{std::move(made), input};
}

bool is_stale_view(const lamella_tensor* t) {
  const auto* impl = static_cast<const TensorImpl*>(t);
  if (impl->base == nullptr || (impl->key_set & kRequiresGradBits) == 0 ||
      (impl->flags & LAMELLA_TENSOR_NO_GRAD_VIEW) != 0) {
    return false;
  }
  AutogradMeta* base = meta_of(impl->base);
  if (base == nullptr || base->history == 0) return false;
  AutogradMeta* own = meta_of(t);
  if (own == nullptr) return true;
  // A view that was made a leaf by hand stays one.
  if (!own->grad_fn && (impl->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0) return false;
  return own->history != base->history;
}

Edge gradient_edge(lamella_tensor* t) {
  t = behind_levels(t);
  if (LAMELLA_UNLIKELY(static_cast<TensorImpl*>(t)->base != nullptr) && is_stale_view(t))
    refresh(t);
  if ((t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) == 0) return Edge();
  if (Node* bare = bare_node(t)) return Edge{NodePtr::borrow(bare), 0};
  AutogradMeta* meta = meta_of(t);
  if (LAMELLA_LIKELY(meta != nullptr)) {
    if (LAMELLA_LIKELY(static_cast<bool>(meta->grad_fn))) return Edge{meta->grad_fn, meta->output};
  }
  return Edge{leaf_node(t), 0};
}

void check_inplace(const char* op, const char* argument, lamella_tensor* t) {
  t = behind_levels(t);
  auto* impl = static_cast<TensorImpl*>(t);
  LAMELLA_CHECK((t->flags & LAMELLA_TENSOR_INFERENCE) == 0, op, ": expected '", argument,
                "' not to be made in inference mode, since gradients are recorded; clone it first");
  bool no_grad_view = (t->flags & LAMELLA_TENSOR_NO_GRAD_VIEW) != 0;
  LAMELLA_CHECK(!requires_grad(t) || !is_leaf(t) || no_grad_view, op, ": expected '", argument,
                "' not to be a leaf that requires gradients, since it is written in place; write "
                "it under no_grad(), or write a copy");
  if (impl->base == nullptr) return;
  AutogradMeta* meta = meta_of(t);
  LAMELLA_CHECK(meta == nullptr || !meta->of_function, op, ": expected '", argument,
                "' not to be a view that ", grad_fn(t)->name(),
                " returned, since the gradient of that function would be lost when it is written "
                "in place; write a copy");
  if (!requires_grad(impl->base)) return;
  LAMELLA_CHECK(!is_leaf(impl->base), op, ": expected '", argument,
                "' not to be a view of a leaf that requires gradients, since it is written in "
                "place; write it under no_grad(), or write a copy");
  LAMELLA_CHECK(!no_grad_view, op, ": expected '", argument,
                "' to be a view that was made while gradients are recorded, got one made under "
                "no_grad() of a tensor that requires gradients; make the view again, or write it "
                "under no_grad()");
}

void rebase_history(lamella_tensor* t, const NodePtr& node, int edge) {
  if (LAMELLA_UNLIKELY(is_batched(t))) {
    rebase_history(wrapped(t), node, edge);
    return show_gradient_bits(t);
  }
  auto* impl = static_cast<TensorImpl*>(t);
  TensorImpl* base = impl->base;
  if (base == nullptr) {
    uint32_t output = node->add_output(t);
    AutogradMeta* meta = ensure_meta(t);
    attach(t, Edge{node, output});
    ++meta->history;
    return;
  }
  node->add_output(t);
  LAMELLA_CHECK(node->output_count() == 1, node->name(),
                ": expected the only output of an operator that writes a view in place, got ",
                node->output_count(), " outputs");
  NodePtr slices = NodePtr::adopt(new CopySlices(base, t, gradient_edge(base), node, edge));
  uint32_t output = slices->add_output(base);
  AutogradMeta* meta = ensure_meta(base);
  attach(base, Edge{slices, output});
  ++meta->history;
  t->key_set |= kRequiresGradBits;
  refresh(t);
}

void detach_in_place(lamella_tensor* t) {
  if (is_batched(t)) {
    detach_in_place(wrapped(t));
    return show_gradient_bits(t);
  }
  auto* impl = static_cast<TensorImpl*>(t);
  LAMELLA_CHECK(impl->base == nullptr || (t->flags & LAMELLA_TENSOR_INFERENCE) != 0,
                "detach_: expected a tensor that is no view, got a view",
                requires_grad(t) ? " of one that requires gradients" : "", "; use detach()");
  set_tangent(t, TensorBase());
  if (t->autograd != nullptr) {
    AutogradMeta* meta = ensure_meta(t);
    meta->grad_fn = NodePtr();
    meta->output = 0;
  }
  set_requires_grad(impl, false);
}

}  // namespace lamella::autograd
