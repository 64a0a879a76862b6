// The C functions of tensors and of the engine; modes are in mode.cpp, nodes in foreign_node.cpp.
#include <memory>

#include "lamella/api/functions.h"
#include "lamella/core/code.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/core/version_counter.h"
#include "lamella/layers/autograd/engine.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/variable.h"

using namespace lamella;
using namespace lamella::autograd;

namespace {

// A root's gradient: given, or ones for one element.
TensorBase root_grad(lamella_tensor* root, lamella_tensor* grad, uint32_t index) {
  Tensor t{TensorBase::borrow(root)};
  if (LAMELLA_UNLIKELY(is_batched(root))) {
    // The gradient is that of the tensor behind the batched root.
    lamella_tensor* variable = behind_levels(root);
    BatchLevels levels = levels_of(root);
    if (grad == nullptr) {
      LAMELLA_CHECK(t.numel() == 1, "backward: expected 'gradient' for output ", index,
                    ", since it has more than one element, shape ", t.sizes());
      Tensor one{make_empty({variable->sizes, static_cast<size_t>(variable->ndim)}, t.scalar_type(),
                            t.device())};
      return one.fill_(1);
    }
    LAMELLA_CHECK(TensorBase::borrow(grad).sizes() == t.sizes(),
                  "backward: expected 'gradient' for output ", index, " of shape ", t.sizes(),
                  ", got ", TensorBase::borrow(grad).sizes());
    TensorBase given = batching_hooks().expose(TensorBase::borrow(grad), levels);
    return root_grad(variable, given.impl(), index);
  }
  if (grad == nullptr) {
    LAMELLA_CHECK(t.numel() == 1, "backward: expected 'gradient' for output ", index,
                  ", since it has more than one element, shape ", t.sizes());
    LAMELLA_CHECK(t.is_floating_point(), "backward: expected 'gradient' for output ", index,
                  ", since it is ", t.scalar_type());
    // The gradient of a wrapper must be a wrapper too, so its layer has to see the call, and so has
    // a mode.
    if ((root->flags & LAMELLA_TENSOR_WRAPPER) != 0 || mode_sees_calls())
      return lamella::ones_like(t, {}, MemoryFormat::Preserve);
    Tensor one{make_empty(t.sizes(), t.scalar_type(), t.device())};
    one.fill_(1);
    return one;
  }
  Tensor g{TensorBase::borrow(grad)};
  LAMELLA_CHECK(g.sizes() == t.sizes(), "backward: expected 'gradient' for output ", index,
                " of shape ", t.sizes(), ", got ", g.sizes());
  LAMELLA_CHECK(g.is_complex() == t.is_complex(), "backward: expected 'gradient' for output ",
                index, " to be ", t.scalar_type(), " as the output is, got ", g.scalar_type());
  return g;
}

// A hook, with a reference to the library that contains its functions.
struct KeptHook {
  explicit KeptHook(const lamella_tensor_hook& hook)
      : code(lamella::code::address_of(hook.call)), hook(hook) {}
  static lamella_status call(void* context, lamella_tensor* grad, lamella_tensor** replacement) {
    const lamella_tensor_hook& hook = static_cast<KeptHook*>(context)->hook;
    return hook.call(hook.context, grad, replacement);
  }
  static void dispose(void* context) {
    std::unique_ptr<KeptHook> kept(static_cast<KeptHook*>(context));
    if (kept->hook.dispose != nullptr) kept->hook.dispose(kept->hook.context);
  }
  lamella::code::Use code;
  lamella_tensor_hook hook;
};

}  // namespace

extern "C" {

int32_t lamella_tensor_requires_grad(lamella_tensor* tensor) noexcept {
  return any_requires_grad(tensor) ? 1 : 0;
}
lamella_status lamella_tensor_set_data(lamella_tensor* tensor, lamella_tensor* source) noexcept {
  return lamella::detail::guarded([&] {
    auto type = static_cast<ScalarType>(source->scalar_type);
    LAMELLA_CHECK(
        lamella_tensor_requires_grad(tensor) == 0 || is_floating_point(type) || is_complex(type),
        "data: expected a floating-point or complex tensor for one that requires grad, "
        "got ",
        type);
    shallow_copy_from(static_cast<TensorImpl*>(tensor), static_cast<TensorImpl*>(source));
  });
}
lamella_status lamella_tensor_set_requires_grad(lamella_tensor* tensor, int32_t value) noexcept {
  return lamella::detail::guarded([&] { set_leaf_requires_grad(tensor, value != 0); });
}
lamella_tensor* lamella_tensor_grad(lamella_tensor* tensor) noexcept {
  return grad(tensor).unsafe_release();
}
lamella_status lamella_tensor_set_grad(lamella_tensor* tensor, lamella_tensor* grad) noexcept {
  return lamella::detail::guarded([&] { set_grad(tensor, TensorBase::borrow(grad)); });
}
lamella_status lamella_tensor_retain_grad(lamella_tensor* tensor) noexcept {
  return lamella::detail::guarded([&] { retain_grad(tensor); });
}
int32_t lamella_tensor_retains_grad(lamella_tensor* tensor) noexcept {
  return retains_grad(tensor) ? 1 : 0;
}
lamella_tensor* lamella_tensor_base(lamella_tensor* tensor) noexcept {
  if (is_batched(tensor)) return nullptr;  // the wrapped tensor's base is not exposed
  return TensorBase::borrow(static_cast<TensorImpl*>(tensor)->base).unsafe_release();
}
lamella_status lamella_tensor_data(lamella_tensor* tensor, lamella_tensor** result) noexcept {
  *result = nullptr;
  return lamella::detail::guarded([&] {
    TensorBase made = make_detached(TensorBase::borrow(tensor));
    count_apart(static_cast<TensorImpl*>(behind_levels(made.impl())), 0);
    *result = made.unsafe_release();
  });
}
lamella_status lamella_tensor_add_hook(lamella_tensor* tensor, const lamella_tensor_hook* hook,
                                       uint64_t* id) noexcept {
  return lamella::detail::guarded([&] {
    auto kept = std::make_unique<KeptHook>(*hook);
    *id = add_tensor_hook(tensor, {&KeptHook::call, &KeptHook::dispose, kept.get()});
    kept.release();
  });
}
void lamella_tensor_remove_hook(lamella_tensor* tensor, uint64_t id) noexcept {
  lamella::detail::guarded([&] { remove_tensor_hook(tensor, id); });
}
lamella_status lamella_tensor_drop_hook(lamella_tensor* tensor, uint64_t id) noexcept {
  return lamella::detail::guarded([&] {
    LAMELLA_CHECK(remove_tensor_hook(tensor, id),
                  "remove_hook: expected the number of a hook of this tensor, got ", id);
  });
}

lamella_status lamella_backward_run(lamella_tensor* const* roots, lamella_tensor* const* grads,
                                    uint32_t root_count, lamella_tensor* const* inputs,
                                    uint32_t input_count, uint32_t flags,
                                    lamella_tensor** results) noexcept {
  return run_backward({roots, root_count}, grads, {inputs, input_count}, flags, results);
}

}  // extern "C"

namespace {
Edge edge_at(const BackwardEnds& ends, uint32_t i) {
  if (ends.tensors[i] != nullptr) return gradient_edge(ends.tensors[i]);
  return i < ends.edges.size() ? ends.edges[i] : Edge();
}
}  // namespace

lamella_status autograd::run_backward(const BackwardEnds& roots, lamella_tensor* const* grads,
                                      const BackwardEnds& inputs, uint32_t flags,
                                      lamella_tensor** results) noexcept {
  try {
    std::vector<Root> starts;
    starts.reserve(roots.count);
    for (uint32_t i = 0; i < roots.count; ++i) {
      lamella_tensor* grad = grads != nullptr ? grads[i] : nullptr;
      Edge edge = edge_at(roots, i);
      LAMELLA_CHECK(edge || roots.tensors[i] != nullptr, "backward: expected output ", i,
                    " to be a tensor, got an undefined one");
      LAMELLA_CHECK(edge, "backward: expected output ", i,
                    " to require gradients, got a tensor that nothing was recorded for; was it "
                    "computed under no_grad(), or from inputs that do not require gradients?");
      LAMELLA_CHECK(grad != nullptr || roots.tensors[i] != nullptr,
                    "backward: expected a gradient for output ", i,
                    ", which is no tensor of one element");
      starts.push_back({std::move(edge), roots.tensors[i] != nullptr
                                             ? root_grad(roots.tensors[i], grad, i)
                                             : TensorBase::borrow(grad)});
    }
    BackwardOptions options;
    options.create_graph = (flags & LAMELLA_CREATE_GRAPH) != 0;
    options.retain_graph = (flags & LAMELLA_RETAIN_GRAPH) != 0;
    options.allow_unused = (flags & LAMELLA_ALLOW_UNUSED) != 0;
    options.accumulate = results == nullptr;
    std::vector<Edge> edges;
    for (uint32_t i = 0; inputs.tensors != nullptr && i < inputs.count; ++i) {
      Edge edge = edge_at(inputs, i);
      LAMELLA_CHECK(edge, "backward: expected input ", i, " to require gradients");
      lamella_tensor* tensor = inputs.tensors[i];
      if (options.accumulate && tensor != nullptr && !is_leaf(tensor)) retain_grad(tensor);
      edges.push_back(std::move(edge));
    }
    LAMELLA_CHECK(inputs.tensors == nullptr || inputs.count != 0,
                  "backward: expected 'inputs' not to be empty");
    std::vector<TensorBase> captured;
    lamella_status status =
        run_backward(std::move(starts), edges, options, results != nullptr ? &captured : nullptr);
    if (status != LAMELLA_OK || results == nullptr) return status;
    for (uint32_t i = 0; i < inputs.count; ++i) {
      LAMELLA_CHECK(captured[i].defined() || options.allow_unused,
                    "grad: expected the outputs to depend on input ", i,
                    ", which they do not; pass allow_unused=True to get None for it");
    }
    for (uint32_t i = 0; i < inputs.count; ++i) {
      lamella_tensor* tensor = inputs.tensors[i];
      if (tensor != nullptr && LAMELLA_UNLIKELY(is_batched(tensor)) && captured[i].defined()) {
        captured[i] = batching_hooks().hide(captured[i], levels_of(tensor));
      }
    }
    for (uint32_t i = 0; i < inputs.count; ++i) results[i] = captured[i].unsafe_release();
    return LAMELLA_OK;
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}
