// Node and Edge: the backward graph. Internal to Lamella; C++ users have function.h, C users abi.h.
//
// Note [The graph and its order]
//   A node is one recorded call. Its edges say where the gradients of the call's inputs go: to
//   output `input` of the node that made that input, or to the leaf itself. A node is made after
//   those that its edges point to, so its rank, one more than the highest of theirs, orders the
//   graph: a backward that always takes the node of highest rank meets every node after all its
//   consumers. So no pass over the graph is needed before the first node runs, and the rule holds
//   for graphs that several threads built.
//
// Note [The order of side effects]
//   The backward of a collective is a collective, which all ranks of a job must call in one order.
//   A call of an operator with the tag side_effect gets a rank above those of all such calls before
//   it, so that backward runs them in the reverse order of the forward, whatever the rest of each
//   rank's graph is. The backward of a function defined outside of Lamella may have side effects,
//   so it is treated as such a call in a process that has operators with the tag.
//
// Note [Names of the two directions]
//   A node's "outputs" are the outputs of the forward call: backward passes their gradients to the
//   node. Its "edges" belong to the inputs of the forward call: the node's results go there.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lamella/abi/autograd.h"
#include "lamella/core/macros.h"
#include "lamella/core/tensor_base.h"

namespace lamella::autograd {

class Node;
class SavedTensor;
struct NodeExtras;

LAMELLA_PRIVATE_API void destroy_node(Node* node) noexcept;

// Gradient metadata of one output of a node: the properties that its gradient must have.
struct OutputMeta {
  static constexpr int kInlineDims = 4;
  uint8_t dtype = 0;
  uint8_t device_type = 0;
  int8_t device_index = 0;
  uint8_t layout = 0;
  int32_t ndim = -1;  // -1: an output without a tensor, or one that has no gradient
  union {
    int64_t inline_sizes[kInlineDims];
    int64_t* heap_sizes;
  };

  OutputMeta() {}  // sizes are uninitialised while ndim is -1
  OutputMeta(const OutputMeta&) = delete;
  OutputMeta& operator=(const OutputMeta&) = delete;
  ~OutputMeta() { clear(); }
  LAMELLA_ALWAYS_INLINE void set(const lamella_tensor* t) {
    if (LAMELLA_UNLIKELY(t->ndim > kInlineDims || ndim > kInlineDims)) return set_deep(t);
    dtype = t->scalar_type;
    device_type = t->device_type;
    device_index = t->device_index;
    layout = t->layout;
    ndim = t->ndim;
    for (int32_t d = 0; d < t->ndim; ++d) inline_sizes[d] = t->sizes[d];
  }
  IntArrayRef sizes() const {
    return {ndim > kInlineDims ? heap_sizes : inline_sizes,
            static_cast<size_t>(ndim < 0 ? 0 : ndim)};
  }
  LAMELLA_ALWAYS_INLINE bool fits(const lamella_tensor* g) const {
    if (g->ndim != ndim || g->scalar_type != dtype || g->device_type != device_type) return false;
    const int64_t* mine = ndim > kInlineDims ? heap_sizes : inline_sizes;
    for (int32_t d = 0; d < ndim; ++d) {
      if (g->sizes[d] != mine[d]) return false;
    }
    return true;
  }
  void clear() {
    if (LAMELLA_UNLIKELY(ndim > kInlineDims)) delete[] heap_sizes;
    ndim = -1;
  }

 private:
  LAMELLA_NOINLINE void set_deep(const lamella_tensor* t);
};

// An owned reference to a node.
class NodePtr {
 public:
  constexpr NodePtr() = default;
  constexpr NodePtr(std::nullptr_t) {}  // NOLINT
  NodePtr(const NodePtr& other);
  NodePtr(NodePtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodePtr& operator=(NodePtr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodePtr();
  static NodePtr adopt(Node* node) {
    NodePtr p;
    p.node_ = node;
    return p;
  }
  static NodePtr borrow(Node* node);
  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const NodePtr& other) const { return node_ == other.node_; }
  Node* unsafe_release() { return std::exchange(node_, nullptr); }

 private:
  Node* node_ = nullptr;
};

// Where a gradient goes: output `input` of a node; an empty edge goes nowhere.
struct Edge {
  NodePtr node;
  uint32_t input = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// A hook that runs with the gradient of one output of a node and may replace it. Hooks run in the
// order of their ids.
struct Hook {
  uint64_t id;
  lamella_tensor_hook tensor;
  uint32_t output;
  Hook(uint64_t id, const lamella_tensor_hook& tensor, uint32_t output)
      : id(id), tensor(tensor), output(output) {}
  Hook(const Hook&) = delete;
  ~Hook() {
    if (tensor.dispose != nullptr) tensor.dispose(tensor.context);
  }
};
// Hooks on a whole node; made by the Python layer. Both may replace entries (owned references).
struct NodeHook {
  virtual ~NodeHook() = default;
  // pre: grads of all outputs. post: results of all edges, with the grads that gave them.
  virtual lamella_status run(lamella_tensor** values, uint32_t count, lamella_tensor* const* grads,
                             uint32_t grad_count) = 0;
};

// Held while a list of hooks is read or changed.
struct LAMELLA_PRIVATE_API HookLock {
  HookLock();
  ~HookLock();
  HookLock(const HookLock&) = delete;
};
// Hooks by id. To run them, take all() first: hooks and other threads may add and remove hooks
// meanwhile, and exactly the hooks present at the start run.
template <class H>
class HookList {
 public:
  using Entries = std::vector<std::pair<uint64_t, std::shared_ptr<H>>>;
  bool empty() const { return __atomic_load_n(&count_, __ATOMIC_RELAXED) == 0; }
  void add(uint64_t id, std::shared_ptr<H> hook) {
    HookLock lock;
    entries_.emplace_back(id, std::move(hook));
    ++count_;
  }
  // False: there is none of this number.
  bool remove(uint64_t id) {
    std::shared_ptr<H> removed;  // destroyed after the lock is released
    HookLock lock;
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->first != id) continue;
      removed = std::move(it->second);
      entries_.erase(it);
      --count_;
      return true;
    }
    return false;
  }
  Entries all() const {
    if (empty()) return {};
    HookLock lock;
    return entries_;
  }

 private:
  Entries entries_;
  uint32_t count_ = 0;
};

// The edges whose gradients a backward needs; without a list, all edges that are not empty.
struct WantedEdges {
  const bool* list = nullptr;
  bool operator[](uint32_t i) const { return list == nullptr || list[i]; }
};

// Data that only few nodes have, allocated on first use.
struct LAMELLA_PRIVATE_API NodeExtras {
  HookList<Hook> tensor_hooks;
  HookList<NodeHook> pre_hooks;
  HookList<NodeHook> post_hooks;
  std::unique_ptr<OutputMeta[]> more_outputs;  // of all outputs, where there are several
  uint32_t more_capacity = 0;
  // Tensors whose grad is kept (retain_grad), with the output they are; they run after the hooks.
  std::vector<std::pair<uint32_t, WeakTensorRef>> retained;
  lamella_object* anomaly = nullptr;  // where the call was recorded; owned, see anomaly.h
  NodePtr anomaly_parent;             // the node whose backward recorded this one
  Node* slices = nullptr;             // of a write into a view: the base's node, which runs it
  ~NodeExtras();
};

// A source of new hook ids.
LAMELLA_PRIVATE_API uint64_t next_hook_id();

// A node's place in the order of side effects, for as long as the node lives.
class LAMELLA_PRIVATE_API SideEffectPlace {
 public:
  SideEffectPlace() = default;
  SideEffectPlace(const SideEffectPlace&) = delete;
  ~SideEffectPlace() {
    if (LAMELLA_UNLIKELY(taken_)) leave();
  }
  // Gives the node, whose edges are set, the highest rank so far.
  void take(Node& node);

 private:
  void leave() noexcept;
  bool taken_ = false;
};

class LAMELLA_PRIVATE_API Node {
 public:
  // The derived class provides the memory of the edges: inside of the node or on the heap.
  Node(Edge* edges, uint32_t edge_count) : edges_(edges), edge_count_(edge_count) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // grads: output_count() gradients, NULL: none. results: edge_count() entries, all NULL before, to
  // be filled with owned tensors; no gradient is needed where `wanted` is false. The engine has set
  // the grad mode to run under.
  virtual lamella_status apply(lamella_tensor* const* grads, lamella_tensor** results,
                               WantedEdges wanted) = 0;
  // "MulBackward0".
  virtual std::string name() const = 0;
  // Releases the values saved for backward; apply() fails afterwards if it needs them. Called only
  // by the engine: Note [Releasing saved values].
  virtual void release_saved() noexcept {}
  // Whether there are saved values to release.
  virtual bool keeps_something() const noexcept { return false; }
  // True for a leaf's accumulation, which runs as soon as a gradient arrives.
  virtual bool is_leaf() const { return false; }
  // A saved value by its name ("self", "result"), for inspecting the graph: owned; NULL: unknown.
  lamella_status saved_value(const char* name, lamella_value* value, bool* found) {
    Inside inside(*this);
    return find_saved(name, value, found);
  }
  virtual std::vector<std::string> saved_names() const { return {}; }
  // The places of the tensors that are kept under a name, valid in an Inside; `is_list` says
  // whether the value is a list of tensors. Empty as well for values of other types. Throws after
  // the values were released.
  virtual std::vector<SavedTensor*> saved_tensors(const char*, bool* is_list) {
    *is_list = false;
    return {};
  }
  // The Python object that this node was made by, if any (borrowed).
  virtual void* python_object() const { return nullptr; }

  // No run releases the node's saved values while one of these lives.
  class Inside {
   public:
    explicit Inside(Node& node) : node_(node) { node.enter(); }
    ~Inside() { node_.leave(); }
    Inside(const Inside&) = delete;

   private:
    Node& node_;
  };

  uint32_t edge_count() const { return edge_count_; }
  const Edge& edge(uint32_t i) const { return edges_[i]; }
  // Before the node has consumers.
  LAMELLA_ALWAYS_INLINE void set_edge(uint32_t i, Edge edge) {
    if (edge.node && edge.node->rank_ >= rank_) rank_ = edge.node->rank_ + 1;
    edges_[i] = std::move(edge);
  }
  bool needs(uint32_t i) const { return static_cast<bool>(edges_[i].node); }
  uint32_t output_count() const { return output_count_; }
  // Registers another output; returns its number.
  LAMELLA_ALWAYS_INLINE uint32_t add_output(const lamella_tensor* tensor) {
    if (LAMELLA_UNLIKELY(output_count_ != 0)) return add_another_output(tensor);
    if (tensor != nullptr) first_output_.set(tensor);
    output_count_ = 1;
    return 0;
  }
  const OutputMeta& output(uint32_t i) const {
    return i == 0 && output_count_ <= 1 ? first_output_ : extras_->more_outputs[i];
  }
  // An in-place view change (transpose_) gives the output another shape.
  OutputMeta& mutable_output(uint32_t i) { return const_cast<OutputMeta&>(output(i)); }
  uint32_t rank() const { return rank_; }
  // Before the node has consumers: backward takes it earlier than nodes of lower ranks.
  void raise_rank(uint32_t least) {
    if (rank_ < least) rank_ = least;
  }

  NodeExtras& extras();
  NodeExtras* extras_or_null() const { return __atomic_load_n(&extras_, __ATOMIC_ACQUIRE); }

  void retain() { detail::count_up(&references_); }
  void release() noexcept {
    if (__atomic_load_n(&references_, __ATOMIC_ACQUIRE) == 1 ||
        detail::count_down(&references_) == 0) {
      destroy_node(this);
    }
  }
  // False if the last reference is gone already, while the node is on its way out.
  bool try_retain() { return detail::count_up_unless_zero(&references_); }
  uint32_t use_count() const { return __atomic_load_n(&references_, __ATOMIC_RELAXED); }

 protected:
  virtual lamella_status find_saved(const char*, lamella_value*, bool* found) {
    *found = false;
    return LAMELLA_OK;
  }
  // Whether some run has released the saved values.
  bool given_up() const { return (__atomic_load_n(&inside_, __ATOMIC_ACQUIRE) & kGivenUp) != 0; }
  virtual ~Node() {
    if (LAMELLA_UNLIKELY(extras_ != nullptr)) delete extras_;
  }
  // Frees the object after its destructor ran; objects from the pool say their class.
  virtual void deallocate() noexcept = 0;

  // For derived classes that make their edges late.
  void place_edges(Edge* edges, uint32_t count) {
    edges_ = edges;
    edge_count_ = count;
  }

 private:
  friend void destroy_node(Node*) noexcept;
  friend class Engine;
  LAMELLA_NOINLINE uint32_t add_another_output(const lamella_tensor* tensor);

  // Note [Releasing saved values]
  //   Runs inside of a node are counted, and saved values are not released while there is one, so
  //   formulas need no references of their own. When a run that does not retain the graph leaves
  //   the node, it releases the saved values if no other run is inside; otherwise the last run to
  //   leave does. A run that enters later sees this in the same word (kCleared) before it could
  //   read values that are being released.
  static constexpr uint32_t kGivenUp = 1u << 31;
  static constexpr uint32_t kCleared = 1u << 30;  // release_saved() was called
  void enter() { detail::count_up(&inside_, __ATOMIC_ACQUIRE); }
  void leave() {
    uint32_t left = detail::count_down(&inside_);
    if (LAMELLA_LIKELY(left != kGivenUp)) return;
    if (detail::replace_value(&inside_, &left, kGivenUp | kCleared)) release_saved();
  }
  void leave_giving_up() {
    if (!keeps_something()) return leave();
    uint32_t alone = 1;
    if (LAMELLA_LIKELY(detail::replace_value(&inside_, &alone, kGivenUp | kCleared))) {
      return release_saved();
    }
    __atomic_fetch_or(&inside_, kGivenUp, __ATOMIC_ACQ_REL);
    leave();
  }

  uint32_t references_ = 1;
  uint32_t rank_ = 0;
  Edge* edges_;
  uint32_t edge_count_;
  uint32_t output_count_ = 0;
  NodeExtras* extras_ = nullptr;
  // The engine's, while it holds the fast lane: Note [Two lanes].
  lamella_tensor* incoming_ = nullptr;  // several outputs: a block of them
  Node* next_dead_ = nullptr;           // chain of nodes that are being freed
  uint32_t inside_ = 0;                 // runs inside, and the flags kGivenUp and kCleared
  bool queued_ = false;                 // the engine's, as incoming_
  OutputMeta first_output_;
};

inline NodePtr::NodePtr(const NodePtr& other) : node_(other.node_) {
  if (node_ != nullptr) node_->retain();
}
inline NodePtr::~NodePtr() {
  if (node_ != nullptr) node_->release();
}
inline NodePtr NodePtr::borrow(Node* node) {
  if (node != nullptr) node->retain();
  return adopt(node);
}

// The C handle of a node.
inline lamella_node* to_abi(Node* node) { return reinterpret_cast<lamella_node*>(node); }
inline Node* from_abi(const lamella_node* node) {
  return reinterpret_cast<Node*>(const_cast<lamella_node*>(node));
}

// Throws: this run needs saved values that another one released. `name`: the node's.
[[noreturn]] void throw_given_up(const std::string& name);

}  // namespace lamella::autograd
