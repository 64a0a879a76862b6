// TensorAutograd: the members of Tensor that deal with gradients, inline over
// lamella/abi/autograd.h. Public; part of lamella/api/tensor.h.
#pragma once
#include <string>

#include "lamella/abi/autograd.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

namespace autograd {

struct GraphEdge;

// One node of the backward graph, recorded by a call. It lives while a GraphNodePtr or the graph
// holds it.
class GraphNode {
 public:
  GraphNode() = default;
  explicit GraphNode(lamella_node* node) : node_(node) {}
  // "MulBackward0", or the type's name of a Function.
  LAMELLA_LAZY std::string name() const { return lamella_node_name(node_); }
  // Gradients that it takes, one for each output of the call.
  uint32_t num_inputs() const { return lamella_node_output_count(node_); }
  // Gradients that it gives, one for each tensor the call was given.
  uint32_t num_outputs() const { return lamella_node_input_count(node_); }
  // True if gradient `i` that it computes is used.
  bool should_compute_output(size_t i) const {
    return lamella_node_needs_input(node_, static_cast<uint32_t>(i)) != 0;
  }
  // Where gradient `i` that it computes goes, and all of them.
  GraphEdge next_edge(size_t i) const;
  LAMELLA_LAZY lamella::detail::Lazily<lazy_, std::vector<GraphEdge>> next_edges() const;
  lamella_node* handle() const { return node_; }

 private:
  lamella_node* node_ = nullptr;
};

// A reference to a node, or to none.
class GraphNodePtr {
 public:
  GraphNodePtr() = default;
  GraphNodePtr(std::nullptr_t) {}  // NOLINT: implicit
  GraphNodePtr(const GraphNodePtr& other) : node_(other.node_) {
    if (get() != nullptr) lamella_node_retain(node_.handle());
  }
  GraphNodePtr(GraphNodePtr&& other) noexcept : node_(other.node_) { other.node_ = GraphNode(); }
  GraphNodePtr& operator=(GraphNodePtr other) noexcept {
    detail::swap_plain(node_, other.node_);
    return *this;
  }
  ~GraphNodePtr() {
    if (get() != nullptr) lamella_node_release(node_.handle());
  }
  // Takes over one reference of the caller's.
  static GraphNodePtr adopt(lamella_node* node) {
    GraphNodePtr result;
    result.node_ = GraphNode(node);
    return result;
  }
  // Transfers the handle's reference to the caller.
  lamella_node* unsafe_release() {
    lamella_node* node = node_.handle();
    node_ = GraphNode();
    return node;
  }

  const GraphNode* get() const { return node_.handle() != nullptr ? &node_ : nullptr; }
  const GraphNode* operator->() const { return get(); }
  const GraphNode& operator*() const { return node_; }
  explicit operator bool() const { return get() != nullptr; }
  bool operator==(const GraphNodePtr& other) const {
    return node_.handle() == other.node_.handle();
  }
  bool operator==(std::nullptr_t) const { return get() == nullptr; }
  // The reference as a std::shared_ptr<GraphNode>.
  template <class P>
    requires std::is_same_v<typename P::element_type, GraphNode>
  operator P() const {  // NOLINT: implicit
    if (get() == nullptr) return P();
    auto* kept = new GraphNodePtr(*this);
    return P(&kept->node_, [kept](GraphNode*) { delete kept; });
  }

 private:
  GraphNode node_;
};

// Gradient `input_nr` that a node takes; without a node the gradient goes nowhere.
struct GraphEdge {
  GraphNodePtr function;
  uint32_t input_nr = 0;
  bool is_valid() const { return function.get() != nullptr; }
};
inline GraphEdge GraphNode::next_edge(size_t i) const {
  GraphEdge edge;
  edge.function =
      GraphNodePtr::adopt(lamella_node_next(node_, static_cast<uint32_t>(i), &edge.input_nr));
  return edge;
}
template <int lazy_>
lamella::detail::Lazily<lazy_, std::vector<GraphEdge>> GraphNode::next_edges() const {
  lamella::detail::Lazily<lazy_, std::vector<GraphEdge>> edges;
  for (uint32_t i = 0; i < num_outputs(); ++i) edges.push_back(next_edge(i));
  return edges;
}

}  // namespace autograd

namespace detail {

// The C ABI's view of a list of T, which is one pointer.
template <class T>
lamella_tensor* const* tensor_pointers(ArrayRef<T> list) {
  static_assert(std::is_base_of_v<TensorBase, T> && sizeof(T) == sizeof(lamella_tensor*));
  return reinterpret_cast<lamella_tensor* const*>(list.data());
}

// A bit, or none.
inline constexpr uint32_t bit_if(bool on, uint32_t bit) { return on ? bit : 0; }
inline uint32_t backward_flags(Maybe<bool> retain_graph, bool create_graph) {
  return bit_if(retain_graph.has ? retain_graph.value : create_graph, LAMELLA_RETAIN_GRAPH) |
         bit_if(create_graph, LAMELLA_CREATE_GRAPH);
}

// A hook of type F, called with a T; its result, if it has one, replaces the gradient.
template <class T, class F>
struct GradientHook {
  static lamella_status call(void* context, lamella_tensor* grad, lamella_tensor** replacement) {
    return detail::guarded([&] {
      F& hook = *static_cast<F*>(context);
      T given(TensorBase::borrow(grad));
      if constexpr (std::is_void_v<std::invoke_result_t<F&, T&>>) {
        hook(given);
      } else {
        T result = hook(given);
        if (!result.is_same(given)) *replacement = result.unsafe_release();
      }
    });
  }
  static void dispose(void* context) { delete static_cast<F*>(context); }
};

// What Tensor::mutable_grad() gives: the gradient, with assignment to it.
template <class T>
class GradientReference : public T {
 public:
  explicit GradientReference(lamella_tensor* tensor)
      : T(TensorBase::adopt(lamella_tensor_grad(tensor))), tensor_(TensorBase::borrow(tensor)) {}
  GradientReference(const GradientReference&) = default;
  GradientReference& operator=(const GradientReference& other) {
    return *this = static_cast<const T&>(other);
  }
  GradientReference& operator=(const T& grad) {
    check(lamella_tensor_set_grad(tensor_.impl(), grad.impl()));
    T::operator=(grad);
    return *this;
  }
  void reset() { *this = T(); }

 private:
  TensorBase tensor_;
};

// A memory format may come as part of the options as well.
template <int, class Format>
Format memory_format_of(const Format& given, const TensorOptions& options) {
  return given.has_value() ? given : options.memory_format_opt();
}
// Returns a factory's result, set to require gradients if the options say so.
template <class T>
T with_requires_grad(T&& made, const TensorOptions& options) {
  if (LAMELLA_UNLIKELY(options.requires_grad())) made.set_requires_grad(true);
  return std::move(made);
}
// Returns a result that may be an argument itself, so requires_grad must not be set on it; throws
// if the options ask for that.
template <class T>
T without_requires_grad(T&& made, const TensorOptions& options, const char* op) {
  LAMELLA_CHECK(!options.requires_grad(), op,
                ": expected options without requires_grad, because the result may be 'self'");
  return std::move(made);
}

}  // namespace detail

// T is Tensor. Everything here is a template, so that each body sees all of T's methods.
template <class T>
class TensorAutograd : public TensorBase {
 public:
  TensorAutograd() = default;
  explicit TensorAutograd(const TensorBase& base) : TensorBase(base) {}
  explicit TensorAutograd(TensorBase&& base) noexcept : TensorBase(std::move(base)) {}

  // Whether calls on this tensor are recorded. False for an undefined tensor.
  bool requires_grad() const {
    lamella_tensor* t = impl();
    if (t == nullptr) return false;
    if ((t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0) return true;
    // A view may have got a history through a write to its base.
    return (t->key_set & kRequiresGradBits) != 0 && lamella_tensor_requires_grad(t) != 0;
  }
  // Only leaves of floating-point or complex dtype can be set to require gradients, and only leaves
  // can be set not to.
  const T& set_requires_grad(bool value) const {
    detail::check(lamella_tensor_set_requires_grad(get("requires_grad_"), value ? 1 : 0));
    return self();
  }
  const T& requires_grad_(bool value = true) const { return set_requires_grad(value); }

  // True if no recorded call made it: it does not require gradients, or accumulates them in grad().
  bool is_leaf() const {
    get("is_leaf");
    return !grad_fn();
  }
  // The call that made this tensor; none for a leaf.
  autograd::GraphNodePtr grad_fn() const {
    if (!requires_grad()) return {};
    uint32_t input = 0;
    auto node = autograd::GraphNodePtr::adopt(lamella_tensor_node(impl(), &input));
    return node && is_accumulation(*node) ? autograd::GraphNodePtr() : node;
  }
  // Which of its call's outputs this tensor is; 0 for a leaf.
  uint32_t output_nr() const {
    if (!get("output_nr") || !requires_grad()) return 0;
    uint32_t input = 0;
    autograd::GraphNodePtr::adopt(lamella_tensor_node(impl(), &input));
    return input;
  }

  // The gradient that backward accumulated; undefined if there is none.
  T grad() const { return T(TensorBase::adopt(lamella_tensor_grad(get("grad")))); }
  // The same, to be assigned to: a tensor of this one's shape, dtype and device, or an undefined
  // one.
  detail::GradientReference<T> mutable_grad() const {
    return detail::GradientReference<T>(get("mutable_grad"));
  }
  // Makes backward also store the gradient of a tensor that is not a leaf in grad().
  void retain_grad() const { detail::check(lamella_tensor_retain_grad(get("retain_grad"))); }

  bool retains_grad() const { return lamella_tensor_retains_grad(get("retains_grad")) != 0; }

  // Computes the gradients of the leaves that this tensor was made from, or of `inputs` only, and
  // adds them to their grad(). `gradient`: of this tensor, ones if it has one element.
  // `retain_graph` keeps the graph for another backward (by default as `create_graph`, which
  // records the backward itself).
  void backward(const T& gradient = {}, detail::Maybe<bool> retain_graph = std::nullopt,
                bool create_graph = false, std::optional<ArrayRef<T>> inputs = std::nullopt) const {
    lamella_tensor* root = get("backward");
    lamella_tensor* grad = gradient.impl();
    ArrayRef<T> targets = inputs.value_or(ArrayRef<T>());
    LAMELLA_CHECK(!inputs.has_value() || !targets.empty(),
                  "backward: expected 'inputs' to have tensors, got an empty list");
    detail::check(lamella_backward_run(
        &root, &grad, 1, targets.empty() ? nullptr : detail::tensor_pointers(targets),
        static_cast<uint32_t>(targets.size()), detail::backward_flags(retain_graph, create_graph),
        nullptr));
  }

  // Calls `hook(gradient)` whenever this tensor's gradient is computed; a Tensor that it returns
  // takes the gradient's place. Gives a number for remove_hook().
  template <class F>
  uint64_t register_hook(F&& hook) const {
    using Hook = detail::GradientHook<T, std::decay_t<F>>;
    lamella_tensor* t = get("register_hook");
    lamella_tensor_hook given = {&Hook::call, &Hook::dispose,
                                 new std::decay_t<F>(std::forward<F>(hook))};
    uint64_t id = 0;
    if (lamella_status status = lamella_tensor_add_hook(t, &given, &id)) {
      Hook::dispose(given.context);
      detail::throw_status(status);
    }
    return id;
  }
  // Throws if the tensor has no hook of this number, or has it no more.
  void remove_hook(uint64_t id) const {
    detail::check(lamella_tensor_drop_hook(get("remove_hook"), id));
  }

  bool is_view() const { return TensorBase::adopt(lamella_tensor_base(get("is_view"))).defined(); }
  // The tensor that this one is a view of.
  T _base() const {
    T base(TensorBase::adopt(lamella_tensor_base(get("_base"))));
    LAMELLA_CHECK(base.defined(), "_base: expected a view, got a tensor that is none");
    return base;
  }
  // The same elements without the history. A backward that needs the original elements does not
  // notice writes to data(), but notices those to detach() and tensor_data().
  T data() const {
    lamella_tensor* made = nullptr;
    detail::check(lamella_tensor_data(get("data"), &made));
    return T(TensorBase::adopt(made));
  }
  T variable_data() const { return data(); }
  // Gives this tensor the other's storage, shape and dtype; it keeps its gradient and graph node.
  void set_data(const TensorBase& source) const {
    LAMELLA_CHECK(source.defined(), "set_data: expected a tensor that is defined");
    detail::check(lamella_tensor_set_data(get("set_data"), source.impl()));
  }
  T tensor_data() const { return self().detach(); }

 private:
  const T& self() const { return static_cast<const T&>(*this); }
  lamella_tensor* get(const char* what) const {
    if (LAMELLA_UNLIKELY(impl() == nullptr)) detail::throw_undefined(what);
    return impl();
  }
  static bool is_accumulation(const autograd::GraphNode& node) {
    return std::strcmp(lamella_node_name(node.handle()), "AccumulateGrad") == 0;
  }
};

}  // namespace lamella
