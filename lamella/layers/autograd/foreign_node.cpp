// Nodes made outside of Lamella: the C functions of nodes and saved tensors.
#include "lamella/api/functions.h"
#include "lamella/core/code.h"
#include "lamella/core/error.h"
#include "lamella/dispatch/side_effects.h"
#include "lamella/layers/autograd/anomaly.h"
#include "lamella/layers/autograd/engine.h"
#include "lamella/layers/autograd/node_levels.h"
#include "lamella/layers/autograd/saved.h"
#include "lamella/layers/autograd/variable.h"

namespace lamella::autograd {
namespace {

// The gradients that the running apply() of a foreign node on this thread should compute.
struct Asked {
  const Node* node;
  WantedEdges wanted;
};
__thread Asked asked __attribute__((tls_model("initial-exec"))) = {nullptr, {}};
struct Asking {
  Asking(const Node* node, WantedEdges wanted)
      : before(std::exchange(asked, Asked{node, wanted})) {}
  ~Asking() { asked = before; }
  Asked before;
};

class ForeignNode final : public Node {
 public:
  ForeignNode(const lamella_node_class& type, void* context)
      : Node(nullptr, 0),
        code_(code::address_of(type.apply)),
        type_(type),
        name_(type.name),
        context_(context) {}
  ~ForeignNode() override {
    if (type_.dispose != nullptr) type_.dispose(context_);
  }
  std::string name() const override { return name_; }
  lamella_status apply(lamella_tensor* const* grads, lamella_tensor** results,
                       WantedEdges wanted) override {
    Asking asking(this, wanted);
    if (LAMELLA_UNLIKELY(levels_.any())) return apply_batched(grads, results);
    return type_.apply(context_, grads, output_count(), results, edge_count());
  }
  NodeLevels& levels() { return levels_; }
  const NodeLevels& levels() const { return levels_; }
  void release_saved() noexcept override {
    if (type_.release_saved != nullptr) type_.release_saved(context_);
  }
  bool keeps_something() const noexcept override { return type_.release_saved != nullptr; }
  void set_inputs(lamella_tensor* const* inputs, uint32_t count) {
    LAMELLA_CHECK(list_.empty() && output_count() == 0, name_,
                  ": expected its inputs to be set once, before it has outputs");
    list_.resize(count);
    place_edges(list_.data(), count);
    for (uint32_t i = 0; i < count; ++i) {
      levels_.add_input(inputs[i]);
      if (inputs[i] == nullptr) continue;
      if (Edge edge = gradient_edge(inputs[i])) set_edge(i, std::move(edge));
    }
    if (LAMELLA_UNLIKELY(side_effects_declared())) place_.take(*this);
  }

 protected:
  void deallocate() noexcept override { delete this; }

 private:
  lamella_status apply_batched(lamella_tensor* const* grads, lamella_tensor** results) {
    try {
      LevelsAgain again(levels_.all());
      std::vector<TensorBase> kept;
      std::vector<lamella_tensor*> given;
      for (uint32_t i = 0; i < output_count(); ++i) {
        kept.push_back(levels_.hide_output(TensorBase::borrow(grads[i]), i));
        given.push_back(kept.back().impl());
      }
      lamella_status status =
          type_.apply(context_, given.data(), output_count(), results, edge_count());
      for (uint32_t i = 0; status == LAMELLA_OK && i < edge_count(); ++i) {
        if (results[i] == nullptr) continue;
        TensorBase result = TensorBase::adopt(std::exchange(results[i], nullptr));
        results[i] = levels_.expose_input(result, i).unsafe_release();
      }
      return status;
    } catch (...) {
      return detail::status_of_current_exception();
    }
  }

  code::Use code_;  // ends last, after the context
  lamella_node_class type_;
  NodeLevels levels_;
  std::string name_;
  void* context_;
  std::vector<Edge> list_;
  SideEffectPlace place_;
};

}  // namespace
}  // namespace lamella::autograd

struct lamella_saved_tensor {
  lamella::autograd::SavedTensor tensor;
  lamella::BatchLevels levels;  // at which it was batched; `tensor` is what was behind them
};

using namespace lamella;
using namespace lamella::autograd;

extern "C" {

lamella_status lamella_node_make(const lamella_node_class* type, void* context,
                                 lamella_node** node) noexcept {
  *node = nullptr;
  try {
    auto* made = new ForeignNode(*type, context);
    *node = to_abi(made);
    if ((lamella_thread.modes & LAMELLA_MODE_ANOMALY) != 0) remember_where(made);
    return LAMELLA_OK;
  } catch (...) {
    if (*node == nullptr && type->dispose != nullptr) type->dispose(context);
    return lamella::detail::status_of_current_exception();
  }
}
void lamella_node_retain(lamella_node* node) noexcept { from_abi(node)->retain(); }
void lamella_node_release(lamella_node* node) noexcept { from_abi(node)->release(); }
const char* lamella_node_name(const lamella_node* node) noexcept {
  // Kept per thread, as error texts are.
  static __thread char text[256];
  std::string name = from_abi(node)->name();
  size_t n = std::min(name.size(), sizeof(text) - 1);
  name.copy(text, n);
  text[n] = '\0';
  return text;
}
lamella_status lamella_node_set_inputs(lamella_node* node, lamella_tensor* const* inputs,
                                       uint32_t count) noexcept {
  return detail::guarded([&] {
    auto* foreign = dynamic_cast<ForeignNode*>(from_abi(node));
    LAMELLA_CHECK(foreign != nullptr,
                  "lamella_node_set_inputs: expected a node that "
                  "lamella_node_make() made, got ",
                  from_abi(node)->name());
    foreign->set_inputs(inputs, count);
  });
}
lamella_node* lamella_node_next(const lamella_node* node, uint32_t i, uint32_t* input) noexcept {
  *input = 0;
  if (i >= from_abi(node)->edge_count()) return nullptr;
  const Edge& edge = from_abi(node)->edge(i);
  *input = edge.input;
  return to_abi(NodePtr(edge.node).unsafe_release());
}
uint32_t lamella_node_input_count(const lamella_node* node) noexcept {
  return from_abi(node)->edge_count();
}
int32_t lamella_node_needs_input(const lamella_node* node, uint32_t i) noexcept {
  const Node* n = from_abi(node);
  return i < n->edge_count() && n->needs(i) && (asked.node != n || asked.wanted[i]) ? 1 : 0;
}
lamella_status lamella_node_add_output(lamella_node* node, lamella_tensor* tensor,
                                       int32_t written) noexcept {
  return detail::guarded([&] {
    Node* n = from_abi(node);
    if (auto* foreign = dynamic_cast<ForeignNode*>(n)) foreign->levels().add_output(tensor);
    if (tensor == nullptr) {
      n->add_output(nullptr);
      return;
    }
    if (written == 0) {
      set_function_history(tensor, NodePtr::borrow(n));
      return;
    }
    // The edge that leads to what the tensor was: the one to its present node.
    Edge before = gradient_edge(tensor);
    int edge = -1;
    for (uint32_t i = 0; before && i < n->edge_count(); ++i) {
      if (n->edge(i).node == before.node && n->edge(i).input == before.input) {
        edge = static_cast<int>(i);
        break;
      }
    }
    check_inplace(n->name().c_str(), "tensor", tensor);
    rebase_history(tensor, NodePtr::borrow(n), edge);
  });
}
uint32_t lamella_node_output_count(const lamella_node* node) noexcept {
  return from_abi(node)->output_count();
}
lamella_status lamella_node_zeros(const lamella_node* node, uint32_t i,
                                  lamella_tensor** zeros) noexcept {
  *zeros = nullptr;
  return detail::guarded([&] {
    const Node* n = from_abi(node);
    LAMELLA_CHECK_INDEX(i < n->output_count(), n->name(), ": expected an output below ",
                        n->output_count(), ", got ", i);
    const OutputMeta& meta = n->output(i);
    if (meta.ndim < 0) return;
    Tensor made{make_empty(meta.sizes(), static_cast<ScalarType>(meta.dtype),
                           Device(static_cast<DeviceType>(meta.device_type), meta.device_index))};
    made.zero_();
    TensorBase result = made;
    if (auto* foreign = dynamic_cast<const ForeignNode*>(n)) {
      result = foreign->levels().hide_output(made, i);
    }
    *zeros = result.unsafe_release();
  });
}
lamella_node* lamella_tensor_node(lamella_tensor* tensor, uint32_t* input) noexcept {
  try {
    Edge edge = gradient_edge(tensor);
    if (input != nullptr) *input = edge.input;
    return to_abi(edge.node.unsafe_release());
  } catch (...) {
    lamella::detail::status_of_current_exception();
    return nullptr;
  }
}

lamella_status lamella_saved_tensor_make(lamella_tensor* tensor, int32_t is_output,
                                         lamella_saved_tensor** saved) noexcept {
  *saved = nullptr;
  return detail::guarded([&] {
    auto made = std::make_unique<lamella_saved_tensor>();
    int output = -1;
    if (is_output != 0 && tensor != nullptr) {
      Edge edge = gradient_edge(tensor);
      output = edge ? static_cast<int>(edge.input) : -1;
    }
    check_savable("save_for_backward", "tensor", tensor);
    if (tensor != nullptr) made->levels = levels_of(tensor);
    made->tensor.save(TensorBase::borrow(tensor != nullptr ? behind_levels(tensor) : nullptr),
                      output);
    *saved = made.release();
  });
}
void lamella_saved_tensor_release(lamella_saved_tensor* saved) noexcept { delete saved; }
lamella_status lamella_saved_tensor_unpack(const lamella_saved_tensor* saved, lamella_node* node,
                                           lamella_tensor** tensor) noexcept {
  *tensor = nullptr;
  return detail::guarded([&] {
    TensorBase found = saved->tensor.unpack(from_abi(node), "a saved tensor");
    if (!saved->levels.empty()) found = batching_hooks().hide(found, saved->levels);
    *tensor = found.unsafe_release();
  });
}

}  // extern "C"
