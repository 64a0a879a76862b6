// Runs the backward graph: Note [The graph and its order] in node.h, Note [Two lanes] in engine.h.
#include "lamella/layers/autograd/engine.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include "lamella/abi/autocast.h"
#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/layers/autograd/anomaly.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/stacks.h"
#include "lamella/layers/autograd/variable.h"

namespace lamella::autograd {
namespace {

struct Callback {
  void (*call)(void*);
  void (*dispose)(void*);
  void* context;
};
struct ThreadRuns {
  std::vector<Callback> callbacks;
};
__thread Node* running __attribute__((tls_model("initial-exec"))) = nullptr;
__thread int depth __attribute__((tls_model("initial-exec"))) = 0;
__thread ThreadRuns* thread_runs __attribute__((tls_model("initial-exec"))) = nullptr;

std::atomic<bool> fast_lane_taken{false};

constexpr uint32_t kStack = 16;

// A list that starts as NULLs and lives on the stack where it is short.
template <class T>
class ShortList {
 public:
  explicit ShortList(uint32_t n) : size_(n) {
    if (LAMELLA_UNLIKELY(n > kStack)) data_ = new T[n];
    for (uint32_t i = 0; i < n; ++i) data_[i] = T{};
  }
  ~ShortList() {
    if (data_ != inline_) delete[] data_;
  }
  ShortList(const ShortList&) = delete;
  T* data() { return data_; }
  T& operator[](uint32_t i) { return data_[i]; }

 private:
  uint32_t size_;
  T inline_[kStack];
  T* data_ = inline_;
};
class GradList : public ShortList<lamella_tensor*> {
 public:
  explicit GradList(uint32_t n) : ShortList(n), count_(n) {}
  ~GradList() { clear(); }
  void clear() {
    for (uint32_t i = 0; i < count_; ++i) {
      if ((*this)[i] != nullptr) detail::release(std::exchange((*this)[i], nullptr));
    }
  }

 private:
  uint32_t count_;
};

// Formulas run with autocast off, in the dtypes of the saved tensors.
struct WithoutAutocast {
  uint64_t before = lamella_autocast_exchange(0);
  ~WithoutAutocast() { lamella_autocast_exchange(before); }
};

}  // namespace

Node* current_node() { return running; }
void remember_where(Node* node) {
  NodeExtras& extras = node->extras();
  if (anomaly_hooks().capture != nullptr) extras.anomaly = anomaly_hooks().capture();
  extras.anomaly_parent = NodePtr::borrow(running);
}
void queue_callback(void (*call)(void*), void (*dispose)(void*), void* context) {
  LAMELLA_CHECK(depth > 0, "queue_callback: expected a backward to be running on this thread");
  if (thread_runs == nullptr) thread_runs = new ThreadRuns;
  thread_runs->callbacks.push_back({call, dispose, context});
}

class Engine {
 public:
  Engine(const BackwardOptions& options) : options_(options) {
    fast_ = !fast_lane_taken.exchange(true, std::memory_order_acquire);
    if (!fast_) tables_ = std::make_unique<Tables>();
  }
  ~Engine() {
    // After an error, the pending gradients are dropped.
    for (Node* node : heap_) drop(node);
    for (Node* leaf : leaves_) drop(leaf);
    if (fast_) fast_lane_taken.store(false, std::memory_order_release);
  }

  // Runs only the nodes on paths to these edges.
  void restrict_to(const std::vector<Root>& roots, const std::vector<Edge>& inputs) {
    restricted_ = true;
    paths_ = std::make_unique<Paths>();
    captures_.resize(inputs.size());
    uint32_t lowest = ~uint32_t{0};
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      paths_->capture_of[inputs[i].node.get()].push_back({inputs[i].input, i});
      paths_->needed.insert(inputs[i].node.get());
      lowest = std::min(lowest, inputs[i].node->rank());
    }
    // A depth-first pass in postorder: a node is decided after all nodes its edges lead to.
    std::vector<std::pair<Node*, uint32_t>> stack;
    for (const Root& root : roots) {
      if (root.edge) visit(root.edge.node.get(), lowest, stack);
    }
  }

  lamella_status start(std::vector<Root>& roots) {
    for (Root& root : roots) {
      if (!root.edge) continue;
      if (restricted_ && !wanted(root.edge.node.get())) continue;
      lamella_status status = deliver(root.edge, root.grad.unsafe_release(), nullptr, 0);
      if (status != LAMELLA_OK) return status;
    }
    return LAMELLA_OK;
  }

  lamella_status run() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), by_rank);
      Node* node = heap_.back();
      heap_.pop_back();
      lamella_status status = run_node(node);
      if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return status;
    }
    for (Node* leaf : leaves_) {
      lamella_status status = run_node(leaf);
      if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return status;
    }
    return LAMELLA_OK;
  }

  std::vector<TensorBase>& captures() { return captures_; }

 private:
  struct Capture {
    uint32_t output;
    size_t index;
  };

  static bool by_rank(const Node* a, const Node* b) { return a->rank_ < b->rank_; }

  // ---- Pending gradients ----

  lamella_tensor** waiting(Node* node) {
    uint32_t n = node->output_count_;
    lamella_tensor*& slot = fast_ ? node->incoming_ : tables_->waiting[node];
    if (n <= 1) return &slot;
    if (slot == nullptr) {
      auto** block = new lamella_tensor*[n]();
      slot = reinterpret_cast<lamella_tensor*>(block);
    }
    return reinterpret_cast<lamella_tensor**>(slot);
  }
  bool queued(Node* node) {
    if (fast_) return node->queued_;
    return tables_->queued.count(node) != 0;
  }
  void set_queued(Node* node, bool on) {
    if (fast_) {
      node->queued_ = on;
    } else if (on) {
      tables_->queued.insert(node);
    } else {
      tables_->queued.erase(node);
    }
  }
  // Moves the pending gradients of a node out.
  void take(Node* node, lamella_tensor** grads) {
    uint32_t n = node->output_count_;
    lamella_tensor** from = waiting(node);
    for (uint32_t i = 0; i < n; ++i) grads[i] = std::exchange(from[i], nullptr);
    if (n > 1) {
      delete[] from;
      if (fast_) node->incoming_ = nullptr;
    }
    if (!fast_) tables_->waiting.erase(node);
    set_queued(node, false);
  }
  void drop(Node* node) {
    GradList grads(std::max<uint32_t>(node->output_count_, 1));
    take(node, grads.data());
  }

  // ---- Delivery ----

  // Makes a gradient match an output: sums it to the output's shape, casts it to its dtype.
  // Takes ownership of `grad`, also on failure.
  lamella_status validate(const OutputMeta& meta, lamella_tensor** grad, const Node* from,
                          uint32_t index, const Node* to) {
    lamella_tensor* g = *grad;
    if (LAMELLA_LIKELY(meta.fits(g)) || meta.ndim < 0) return LAMELLA_OK;
    *grad = nullptr;
    return detail::guarded([&] {
      Tensor fixed{TensorBase::adopt(g)};
      std::string who = from != nullptr ? from->name() : std::string("backward");
      auto dtype = static_cast<ScalarType>(meta.dtype);
      LAMELLA_CHECK(static_cast<uint8_t>(fixed.device().type()) == meta.device_type, who,
                    ": expected gradient ", index, " on ",
                    Device(static_cast<DeviceType>(meta.device_type), meta.device_index),
                    ", got one on ", fixed.device());
      if (!fixed.sizes().equals(meta.sizes())) {
        LAMELLA_CHECK(expandable(meta.sizes(), fixed.sizes()), who, ": expected gradient ", index,
                      " of shape ", meta.sizes(), ", got ", fixed.sizes());
        fixed = sum_to(fixed, meta.sizes());
      }
      if (fixed.scalar_type() != dtype) {
        if (fixed.is_complex() && !is_complex(dtype)) fixed = lamella::real(fixed);
        if (fixed.scalar_type() != dtype) fixed = fixed.to(dtype);
      }
      *grad = fixed.unsafe_release();
    });
  }
  static bool expandable(IntArrayRef small, IntArrayRef large) {
    if (small.size() > large.size()) return false;
    size_t lead = large.size() - small.size();
    for (size_t d = 0; d < small.size(); ++d) {
      if (small[d] != 1 && small[d] != large[lead + d]) return false;
    }
    return true;
  }
  static Tensor sum_to(const Tensor& grad, IntArrayRef sizes) {
    IntArrayRef have = grad.sizes();
    size_t lead = have.size() - sizes.size();
    std::vector<int64_t> dims;
    for (size_t d = 0; d < have.size(); ++d) {
      if (d < lead || (sizes[d - lead] == 1 && have[d] != 1))
        dims.push_back(static_cast<int64_t>(d));
    }
    Tensor sum = dims.empty() ? grad : grad.sum(dims, true);
    return lead == 0 ? sum : sum.reshape(sizes);
  }

  // Takes ownership of `grad`; NULL means no gradient.
  lamella_status deliver(const Edge& edge, lamella_tensor* grad, const Node* from, uint32_t index) {
    Node* to = edge.node.get();
    if (grad != nullptr) {
      lamella_status status = validate(to->output(edge.input), &grad, from, index, to);
      if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return status;
    }
    if (to->is_leaf()) {
      if (LAMELLA_UNLIKELY(restricted_) || to->extras_or_null() != nullptr)
        return deliver_to_waiting_leaf(to, grad, from, index);
      if (grad == nullptr) return LAMELLA_OK;
      return static_cast<LeafNode*>(to)->accumulate(TensorBase::adopt(grad));
    }
    bool was_queued = queued(to);
    lamella_status status = put(waiting(to)[edge.input], grad);
    if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return status;
    if (!was_queued) {
      set_queued(to, true);
      heap_.push_back(to);
      std::push_heap(heap_.begin(), heap_.end(), by_rank);
    }
    return LAMELLA_OK;
  }
  // For a leaf whose hooks need the sum of its gradients; it runs at the last one.
  LAMELLA_NOINLINE lamella_status deliver_to_waiting_leaf(Node* leaf, lamella_tensor* grad,
                                                          const Node* from, uint32_t index) {
    const bool was_queued = queued(leaf);
    lamella_status status = put(*waiting(leaf), grad);
    if (status != LAMELLA_OK) return status;
    if (from != nullptr && leaf->extras_or_null() != nullptr && is_last(leaf, from, index)) {
      if (was_queued) std::erase(leaves_, leaf);
      return run_node(leaf);
    }
    if (!was_queued) {
      set_queued(leaf, true);
      leaves_.push_back(leaf);
    }
    return LAMELLA_OK;
  }
  // Whether the gradient along this edge is the leaf's last one in this run. The first call counts
  // what is to come for all leaves.
  bool is_last(Node* leaf, const Node* from, uint32_t index) {
    if (to_come_ != nullptr) return --(*to_come_)[leaf] == 0;
    to_come_ = std::make_unique<std::unordered_map<Node*, uint32_t>>();
    std::unordered_set<const Node*> seen(heap_.begin(), heap_.end());
    std::vector<const Node*> nodes(heap_.begin(), heap_.end());
    auto follow = [&](const Node* node, uint32_t first) {
      for (uint32_t i = first; i < node->edge_count_; ++i) {
        Node* to = node->edges_[i].node.get();
        if (to == nullptr || (restricted_ && !wanted(to))) continue;
        if (to->is_leaf()) {
          ++(*to_come_)[to];
        } else if (seen.insert(to).second) {
          nodes.push_back(to);
        }
      }
    };
    follow(from, index + 1);
    for (size_t i = 0; i < nodes.size(); ++i) follow(nodes[i], 0);
    return (*to_come_)[leaf] == 0;
  }
  // Takes ownership of `grad`; NULL means no gradient.
  LAMELLA_ALWAYS_INLINE lamella_status put(lamella_tensor*& slot, lamella_tensor* grad) {
    if (slot != nullptr) return grad != nullptr ? add_to(slot, grad) : LAMELLA_OK;
    slot = grad;
    return LAMELLA_OK;
  }
  // Takes ownership of `grad`. Adds in place into an operand that has no other reference.
  lamella_status add_to(lamella_tensor*& slot, lamella_tensor* grad) {
    return detail::guarded([&] {
      Tensor sum{TensorBase::adopt(std::exchange(slot, nullptr))};
      Tensor other{TensorBase::adopt(grad)};
      bool seen = is_batched(sum.impl()) || is_batched(other.impl()) || mode_sees_calls();
      if (!grad_enabled() && !seen && sole_owner(sum.impl())) {
        sum.add_(other);
      } else if (!grad_enabled() && !seen && sole_owner(other.impl())) {
        other.add_(sum);
        sum = other;
      } else {
        sum = other + sum;
      }
      slot = sum.unsafe_release();
    });
  }
  // Handlers of tensors of subclasses, and modes, may expect a sum that writes no operand.
  static bool sole_owner(const lamella_tensor* t) {
    const auto* impl = static_cast<const TensorImpl*>(t);
    return t->references == 1 && impl->base == nullptr && (t->flags & LAMELLA_TENSOR_DENSE) != 0 &&
           (t->flags & LAMELLA_TENSOR_WRAPPER) == 0 && t->storage != nullptr &&
           __atomic_load_n(&t->storage->references, __ATOMIC_ACQUIRE) == 1;
  }

  // ---- Nodes ----

  lamella_status run_node(Node* node) {
    GradList grads(std::max<uint32_t>(node->output_count_, 1));
    take(node, grads.data());
    NodeExtras* extras = node->extras_or_null();
    if (LAMELLA_UNLIKELY(extras != nullptr)) {
      lamella_status status = before(*extras, grads.data());
      if (status != LAMELLA_OK) return status;
    }
    const bool runs = LAMELLA_LIKELY(!restricted_) || capture(node, grads.data());
    if (LAMELLA_UNLIKELY(extras != nullptr) && (runs || options_.accumulate)) {
      // A gradient that is only asked for does not see these hooks.
      for (auto& [id, hook] : extras->pre_hooks.all()) {
        lamella_status status = hook->run(grads.data(), node->output_count_, nullptr, 0);
        if (status != LAMELLA_OK) return status;
      }
    }
    if (!runs) return LAMELLA_OK;
    uint32_t n = node->edge_count_;
    GradList results(std::max<uint32_t>(n, 1));
    Node* outer = std::exchange(running, node);
    // Found before the node runs, so that it skips gradients that were not requested.
    ShortList<bool> asked(restricted_ ? n : 0);
    WantedEdges edges;
    if (LAMELLA_UNLIKELY(restricted_)) {
      for (uint32_t i = 0; i < n; ++i) {
        asked[i] = node->edges_[i] && wanted(node->edges_[i].node.get());
      }
      edges.list = asked.data();
    }
    node->enter();
    lamella_status status = node->apply(grads.data(), results.data(), edges);
    running = outer;
    if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) {
      node->leave();
      return failed(node, status);
    }
    if (options_.retain_graph) {
      node->leave();
    } else {
      node->leave_giving_up();
    }
    extras = node->extras_or_null();  // unpacking may have added a hook
    if (LAMELLA_UNLIKELY(extras != nullptr) && !extras->post_hooks.empty()) {
      for (auto& [id, hook] : extras->post_hooks.all()) {
        status = hook->run(results.data(), n, grads.data(), node->output_count_);
        if (status != LAMELLA_OK) return status;
      }
    }
    if (LAMELLA_UNLIKELY(
            (lamella_thread.modes & (LAMELLA_MODE_ANOMALY | LAMELLA_MODE_NO_NAN_CHECK)) ==
            LAMELLA_MODE_ANOMALY)) {
      status = check_nan(node, results.data());
      if (status != LAMELLA_OK) return failed(node, status);
    }
    // A result that is one of them then belongs to its receiver alone, which need not copy it.
    grads.clear();
    for (uint32_t i = 0; i < n; ++i) {
      const Edge& edge = node->edges_[i];
      if (!edge || !edges[i]) continue;
      status = deliver(edge, std::exchange(results[i], nullptr), node, i);
      if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return failed(node, status);
    }
    return LAMELLA_OK;
  }

  // Tensor hooks, retained grads.
  lamella_status before(NodeExtras& extras, lamella_tensor** grads) {
    for (auto& [id, hook] : extras.tensor_hooks.all()) {
      lamella_tensor* g = grads[hook->output];
      if (g == nullptr) continue;
      lamella_tensor* replacement = nullptr;
      lamella_status status = hook->tensor.call(hook->tensor.context, g, &replacement);
      if (status != LAMELLA_OK) return status;
      if (replacement != nullptr) {
        detail::release(g);
        grads[hook->output] = replacement;
      }
    }
    for (auto& [output, weak] : extras.retained) {
      TensorBase t = weak.lock();
      if (!t.defined() || grads[output] == nullptr) continue;
      try {
        Tensor g{TensorBase::borrow(grads[output])};
        TensorBase old = grad(t.impl());
        set_grad(t.impl(), old.defined() ? static_cast<TensorBase>(Tensor(old) + g)
                                         : static_cast<TensorBase>(g.clone()));
      } catch (...) {
        return detail::status_of_current_exception();
      }
    }
    return LAMELLA_OK;
  }

  // Captures the requested gradients. Returns true if the node has to run as well.
  bool capture(Node* node, lamella_tensor** grads) {
    auto found = paths_->capture_of.find(node);
    if (found == paths_->capture_of.end()) return true;
    if (options_.accumulate) {
      if (!node->is_leaf()) return leads_on(node);
      return true;
    }
    for (const Capture& one : found->second) {
      captures_[one.index] = TensorBase::borrow(grads[one.output]);
    }
    return !node->is_leaf() && leads_on(node);
  }
  bool leads_on(Node* node) {
    for (uint32_t i = 0; i < node->edge_count_; ++i) {
      if (node->edges_[i] && wanted(node->edges_[i].node.get())) return true;
    }
    return false;
  }

  lamella_status check_nan(Node* node, lamella_tensor** results) {
    return detail::guarded([&] {
      for (uint32_t i = 0; i < node->edge_count_; ++i) {
        if (results[i] == nullptr) continue;
        GradGuard no_grad(false);
        Tensor t{TensorBase::borrow(results[i])};
        LAMELLA_CHECK(!t.isnan().any().item().to<bool>(), node->name(),
                      ": returned NaN as gradient ", i);
      }
    });
  }
  // Adds to the error where the node was recorded.
  lamella_status failed(Node* node, lamella_status status) {
    NodeExtras* extras = node->extras_or_null();
    if (extras == nullptr || extras->anomaly == nullptr || anomaly_hooks().describe == nullptr)
      return status;
    if (status == LAMELLA_FOREIGN_ERROR || told_) return status;
    told_ = true;
    std::string text = lamella_error_text();
    text += "\n  " + node->name() + " was recorded here:\n";
    anomaly_hooks().describe(extras->anomaly, &text);
    for (Node* parent = extras->anomaly_parent.get(); parent != nullptr;) {
      NodeExtras* more = parent->extras_or_null();
      if (more == nullptr || more->anomaly == nullptr) break;
      text += "\n  in the backward of " + parent->name() + ", which was recorded here:\n";
      anomaly_hooks().describe(more->anomaly, &text);
      parent = more->anomaly_parent.get();
    }
    return detail::fail(status, text);
  }

  // ---- Paths to inputs ----

  bool wanted(Node* node) { return paths_->needed.count(node) != 0; }
  void visit(Node* root, uint32_t lowest, std::vector<std::pair<Node*, uint32_t>>& stack) {
    if (!paths_->visited.insert(root).second) return;
    stack.push_back({root, 0});
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next < node->edge_count_) {
        const Edge& edge = node->edges_[next++];
        if (!edge) continue;
        Node* child = edge.node.get();
        if (child->rank_ >= lowest && paths_->visited.insert(child).second)
          stack.push_back({child, 0});
        continue;
      }
      bool leads = wanted(node);
      for (uint32_t i = 0; i < node->edge_count_ && !leads; ++i) {
        leads = node->edges_[i] && wanted(node->edges_[i].node.get());
      }
      if (leads) paths_->needed.insert(node);
      stack.pop_back();
    }
  }

  BackwardOptions options_;
  bool fast_;
  bool restricted_ = false;
  bool told_ = false;
  std::vector<Node*> heap_;    // alive as long as the roots are: edges of a node never change
  std::vector<Node*> leaves_;  // with pending gradients
  std::unique_ptr<std::unordered_map<Node*, uint32_t>> to_come_;  // gradients by leaf: is_last()
  // Pending gradients of a run without the fast lane.
  struct Tables {
    std::unordered_map<Node*, lamella_tensor*> waiting;
    std::unordered_set<Node*> queued;
  };
  std::unique_ptr<Tables> tables_;
  // State of a run that is restricted to the paths to some inputs.
  struct Paths {
    std::unordered_set<Node*> needed;
    std::unordered_set<Node*> visited;
    std::unordered_map<Node*, std::vector<Capture>> capture_of;
  };
  std::unique_ptr<Paths> paths_;
  std::vector<TensorBase> captures_;
};

namespace {

struct DepthGuard {
  DepthGuard() { ++depth; }
  ~DepthGuard() { --depth; }
};

// Runs the queued callbacks and those they queue. Only the outermost run does this.
lamella_status run_callbacks(bool call) {
  lamella_status status = LAMELLA_OK;
  while (depth == 1 && thread_runs != nullptr) {
    std::unique_ptr<ThreadRuns> runs(std::exchange(thread_runs, nullptr));
    for (Callback& one : runs->callbacks) {
      if (call && status == LAMELLA_OK) {
        try {
          one.call(one.context);
        } catch (...) {
          status = detail::status_of_current_exception();
        }
      }
      if (one.dispose != nullptr) one.dispose(one.context);
    }
  }
  return status;
}

lamella_status run_here(std::vector<Root>& roots, const std::vector<Edge>& inputs,
                        const BackwardOptions& options, std::vector<TensorBase>* results) {
  try {
    // Autograd's keys take part even if the layer that started the backward excludes them.
    constexpr uint64_t below = autograd_dispatch_keyset.raw_repr();
    lamella_status status;
    {
      ExcludedKeysGuard above(lamella_thread.excluded & ~below);
      WithoutAutocast casts;
      ModeGuard modes(LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_SAVED_HOOKS,
                      (options.create_graph ? 0 : LAMELLA_MODE_NO_GRAD) |
                          (lamella_thread.modes & LAMELLA_MODE_SAVED_HOOKS));
      Engine engine(options);
      if (!inputs.empty()) engine.restrict_to(roots, inputs);
      status = engine.start(roots);
      if (status == LAMELLA_OK) status = engine.run();
      if (status == LAMELLA_OK && results != nullptr) {
        *results = std::move(engine.captures());
      }
    }
    if (status != LAMELLA_OK) {
      std::string text = status == LAMELLA_FOREIGN_ERROR ? std::string() : lamella_error_text();
      run_callbacks(false);
      return status == LAMELLA_FOREIGN_ERROR ? status : detail::fail(status, text);
    }
    return run_callbacks(true);
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

}  // namespace

lamella_status run_backward(std::vector<Root> roots, const std::vector<Edge>& inputs,
                            const BackwardOptions& options, std::vector<TensorBase>* results) {
  DepthGuard guard;
  if (LAMELLA_LIKELY(depth <= kFitAnyStack)) return run_here(roots, inputs, options, results);
  return run_deep(depth, [&] { return run_here(roots, inputs, options, results); });
}

}  // namespace lamella::autograd
