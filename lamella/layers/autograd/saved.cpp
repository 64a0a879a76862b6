// Tensors kept for backward, and the hooks that see them.
#include "lamella/layers/autograd/saved.h"

#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/variable.h"

namespace lamella::autograd {
namespace {

// Hooks of one thread; made when first used, ended with the last pop.
struct HookStack {
  std::vector<std::shared_ptr<SavedHooks>> hooks;
  std::string disabled;
};
__thread HookStack* stack __attribute__((tls_model("initial-exec"))) = nullptr;

HookStack& own_stack() {
  if (stack == nullptr) stack = new HookStack;
  return *stack;
}
void trim() {
  bool on = stack != nullptr && !stack->hooks.empty();
  lamella_set_modes(LAMELLA_MODE_SAVED_HOOKS, on ? LAMELLA_MODE_SAVED_HOOKS : 0);
  if (stack != nullptr && stack->hooks.empty() && stack->disabled.empty()) {
    delete stack;
    stack = nullptr;
  }
}

}  // namespace

void push_saved_hooks(std::shared_ptr<SavedHooks> hooks) {
  LAMELLA_CHECK(stack == nullptr || stack->disabled.empty(), saved_hooks_disabled());
  own_stack().hooks.push_back(std::move(hooks));
  trim();
}
void pop_saved_hooks() {
  LAMELLA_CHECK(stack != nullptr && !stack->hooks.empty(),
                "saved_tensors_hooks: expected hooks to be set, got none");
  stack->hooks.pop_back();
  trim();
}
SavedHooksGuard::SavedHooksGuard() {
  if (stack != nullptr) before_ = stack->hooks;
}
SavedHooksGuard::~SavedHooksGuard() {
  if (stack == nullptr && before_.empty()) return;
  own_stack().hooks = std::move(before_);
  trim();
}
void disable_saved_hooks(const std::string& text) {
  LAMELLA_CHECK(text.empty() || stack == nullptr || stack->hooks.empty(), text);
  own_stack().disabled = text;
  trim();
}
std::string saved_hooks_disabled() { return stack != nullptr ? stack->disabled : std::string(); }

void check_savable(const char* op, const char* argument, const lamella_tensor* tensor) {
  LAMELLA_CHECK(tensor == nullptr || (tensor->flags & LAMELLA_TENSOR_INFERENCE) == 0, op,
                ": expected '", argument,
                "' not to be made in inference mode, since it is saved for backward; clone it "
                "first");
}

struct SavedTensor::Packed {
  std::shared_ptr<SavedHooks> hooks;
  lamella_object* object = nullptr;
  Edge edge;        // of an input, if the tensor itself is not kept
  TensorBase dual;  // has the tangent, until the forward level ends
  void keep_tangent(const TensorBase& t) {
    if (!t.defined()) return;
    dual = make_detached(t);
    set_tangent(dual.impl(), t);
  }
  TensorBase kept_tangent() const { return dual.defined() ? tangent(dual.impl()) : dual; }
  ~Packed() {
    if (object != nullptr && __atomic_fetch_sub(&object->references, 1, __ATOMIC_ACQ_REL) == 1) {
      object->destroy(object);
    }
  }
};

SavedTensor& SavedTensor::operator=(SavedTensor&& other) noexcept {
  reset();
  tensor_ = std::move(other.tensor_);
  version_ = other.version_;
  output_ = other.output_;
  state_ = std::exchange(other.state_, kEmpty);
  packed_ = std::exchange(other.packed_, nullptr);
  return *this;
}

void SavedTensor::release_packed() noexcept { delete std::exchange(packed_, nullptr); }

void SavedTensor::save_slowly(const TensorBase& tensor, int output) {
  reset();
  output_ = static_cast<uint32_t>(output + 1);
  if (!tensor.defined()) return;
  version_ = tensor._version();
  tensor_ = output >= 0 ? make_detached(tensor) : tensor;
  state_ = kTensor;
  if (LAMELLA_UNLIKELY((lamella_thread.modes & LAMELLA_MODE_SAVED_HOOKS) != 0) &&
      stack->hooks.back() != nullptr) {
    set_hooks(stack->hooks.back(), tensor.impl());
  }
}

void SavedTensor::set_tangent_of(lamella_tensor* output) {
  if (state_ == kEmpty || output_ == 0) return;
  TensorBase t = tangent(output);
  if (!t.defined()) return;
  if (state_ == kPacked) {
    packed_->keep_tangent(t);
  } else {
    set_tangent(tensor_.impl(), t);
  }
}

void SavedTensor::set_hooks(std::shared_ptr<SavedHooks> hooks, lamella_tensor* seen) {
  LAMELLA_CHECK(state_ != kPacked, "register_hooks: expected a saved tensor without hooks");
  if (state_ == kEmpty) return;
  auto packed = std::make_unique<Packed>();
  packed->hooks = std::move(hooks);
  {
    // The hook's operators are not recorded, and tensors saved inside it call no hooks.
    GradGuard no_grad(false);
    ModeGuard no_hooks(LAMELLA_MODE_SAVED_HOOKS, 0);
    lamella_tensor* own = tensor_.impl();
    detail::check(packed->hooks->pack(seen != nullptr ? seen : own, own, &packed->object));
    LAMELLA_CHECK(tensor_._version() == version_,
                  "saved_tensors_hooks: expected 'pack_hook' not to write into the tensor that it "
                  "is given, got one at version ",
                  version_, " that came back at version ", tensor_._version());
  }
  if (output_ == 0) packed->edge = gradient_edge(tensor_.impl());
  packed->keep_tangent(tangent(tensor_.impl()));
  tensor_.reset();
  packed_ = packed.release();
  state_ = kPacked;
}

TensorBase SavedTensor::unpack_slowly(Node* node, const char* what) const {
  if (state_ == kEmpty) return TensorBase();
  auto name = [node] { return node != nullptr ? node->name() : std::string("backward"); };
  TensorBase tensor = tensor_;
  if (state_ == kPacked) {
    lamella_tensor* raw = nullptr;
    {
      GradGuard no_grad(false);
      ModeGuard no_hooks(LAMELLA_MODE_SAVED_HOOKS, 0);
      detail::check(packed_->hooks->unpack(packed_->object, &raw));
    }
    tensor = TensorBase::adopt(raw);
    const bool follows = output_ == 0 && packed_->edge && grad_enabled();
    TensorBase along = packed_->kept_tangent();
    if (follows || along.defined()) {
      tensor = make_detached(tensor);
      if (along.defined()) set_tangent(tensor.impl(), along);
      if (follows) attach(tensor.impl(), packed_->edge);
    }
    if (follows) return tensor;
  } else {
    uint32_t version = tensor._version();
    LAMELLA_CHECK(version == version_, name(), ": expected '", what,
                  "' as it was when it was saved, at version ", version_, ", got version ", version,
                  ": it was written in place since; write a copy instead, or enable anomaly "
                  "detection to see where it was used");
  }
  if (output_ != 0 && node != nullptr && grad_enabled()) {
    TensorBase alias = make_detached(tensor);
    if (TensorBase t = tangent(tensor.impl()); t.defined()) set_tangent(alias.impl(), t);
    attach(alias.impl(), edge_of_output(node, output_ - 1, alias.impl()));
    return alias;
  }
  return tensor;
}

}  // namespace lamella::autograd
