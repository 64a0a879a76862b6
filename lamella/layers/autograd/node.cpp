// Nodes: outputs, edges, extras, and their end.
#include "lamella/layers/autograd/node.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/core/memory_pool.h"

namespace lamella::autograd {

LAMELLA_NOINLINE void OutputMeta::set_deep(const lamella_tensor* t) {
  clear();
  dtype = t->scalar_type;
  device_type = t->device_type;
  device_index = t->device_index;
  layout = t->layout;
  int64_t* list = inline_sizes;
  if (t->ndim > kInlineDims) heap_sizes = list = new int64_t[static_cast<size_t>(t->ndim)];
  for (int32_t d = 0; d < t->ndim; ++d) list[d] = t->sizes[d];
  ndim = t->ndim;
}

uint64_t next_hook_id() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {
fork::Held<std::mutex> hook_mutex{fork::Level::kLayers};

// The highest rank of a node with side effects. It is reset when no such node is alive, so that
// ranks do not grow from one training step to the next.
struct SideEffects {
  fork::Held<std::mutex> mutex{fork::Level::kMemory};  // nothing else is taken inside
  uint32_t last = 0, alive = 0;
} side_effects;
}  // namespace
HookLock::HookLock() { hook_mutex.lock(); }
HookLock::~HookLock() { hook_mutex.unlock(); }

void SideEffectPlace::take(Node& node) {
  std::lock_guard lock(side_effects.mutex);
  taken_ = true;
  if (side_effects.alive++ == 0) side_effects.last = 0;
  node.raise_rank(side_effects.last + 1);
  side_effects.last = node.rank();
}
void SideEffectPlace::leave() noexcept {
  std::lock_guard lock(side_effects.mutex);
  --side_effects.alive;
}

NodeExtras::~NodeExtras() {
  if (anomaly != nullptr && __atomic_fetch_sub(&anomaly->references, 1, __ATOMIC_ACQ_REL) == 1) {
    anomaly->destroy(anomaly);
  }
}

NodeExtras& Node::extras() {
  if (NodeExtras* there = extras_or_null()) return *there;
  auto* fresh = new NodeExtras;
  NodeExtras* expected = nullptr;
  if (!__atomic_compare_exchange_n(&extras_, &expected, fresh, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    delete fresh;
    return *expected;
  }
  return *fresh;
}

LAMELLA_NOINLINE uint32_t Node::add_another_output(const lamella_tensor* tensor) {
  uint32_t n = output_count_;
  NodeExtras& more = extras();
  if (more.more_capacity <= n) {
    uint32_t capacity = n < 4 ? 4 : 2 * n;
    std::unique_ptr<OutputMeta[]> grown(new OutputMeta[capacity]);
    auto move = [](OutputMeta& to, OutputMeta& from) {
      to.dtype = from.dtype;
      to.device_type = from.device_type;
      to.device_index = from.device_index;
      to.layout = from.layout;
      to.ndim = std::exchange(from.ndim, -1);
      std::memcpy(to.inline_sizes, from.inline_sizes, sizeof(to.inline_sizes));
    };
    if (n == 1) {
      move(grown[0], first_output_);
    } else {
      for (uint32_t i = 0; i < n; ++i) move(grown[i], more.more_outputs[i]);
    }
    more.more_outputs = std::move(grown);
    more.more_capacity = capacity;
  }
  if (tensor != nullptr) more.more_outputs[n].set(tensor);
  output_count_ = n + 1;
  return n;
}

namespace {
// Nodes that this thread has yet to free: long chains are freed in a loop, not by recursion.
__thread Node* dead __attribute__((tls_model("initial-exec"))) = nullptr;
__thread bool burying __attribute__((tls_model("initial-exec"))) = false;
}  // namespace

void destroy_node(Node* node) noexcept {
  if (burying) {
    node->next_dead_ = dead;
    dead = node;
    return;
  }
  burying = true;
  node->deallocate();
  while (dead != nullptr) {
    Node* next = dead;
    dead = next->next_dead_;
    next->deallocate();
  }
  burying = false;
}

}  // namespace lamella::autograd
