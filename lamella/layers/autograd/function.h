// autograd::Function: a differentiable function written in C++. Public, inline over
// lamella/abi/autograd.h, so that a library that has some needs no C++ symbol of Lamella's.
//
//   struct Square : lamella::autograd::Function<Square> {
//     static Tensor forward(AutogradContext* ctx, const Tensor& x) {
//       ctx->save_for_backward({x});
//       return x * x;
//     }
//     static variable_list backward(AutogradContext* ctx, variable_list grads) {
//       return {2 * ctx->get_saved_variables()[0] * grads[0]};
//     }
//   };
//   Tensor y = Square::apply(x);
#pragma once
#include <cxxabi.h>
#include <stdlib.h>

#include <array>
#include <optional>
#include <tuple>
#include <typeinfo>

#include "lamella/api/ops/alias.h"
#include "lamella/api/ops/detach.h"
#include "lamella/api/ops/zeros.h"
#include "lamella/layers/autograd/context.h"
#include "lamella/layers/autograd/grad_mode.h"

namespace lamella {

namespace autograd {

// The tensor that apply() gives where forward returns one. Note [A tensor or a list of one]: an
// older form of apply() always gave a list, and code written for it reads the result as
// F::apply(x)[0]. Right behind the call, [0] is therefore the tensor itself; as soon as it has a
// name, [i] is its entry i, as for any tensor.
class Applied : public Tensor {
 public:
  Applied() = default;
  Applied(const TensorBase& tensor) : Tensor(tensor) {}                 // NOLINT: implicit
  Applied(TensorBase&& tensor) noexcept : Tensor(std::move(tensor)) {}  // NOLINT: implicit

  LAMELLA_LAZY Tensor operator[](int64_t index) const& { return Tensor::operator[](index); }
  LAMELLA_LAZY Tensor operator[](int64_t index) && {
    LAMELLA_CHECK_INDEX(index == 0,
                        "apply: expected index 0 right behind a call that gives one tensor, got ",
                        index, "; name the tensor first to take its entries");
    return std::move(*this);
  }
};

}  // namespace autograd

namespace detail {

// The facts that depend on a Function's class; the rest is not a template.
struct FunctionClass {
  lamella_node_class node_class;
  std::vector<Tensor> (*backward)(autograd::AutogradContext*, std::vector<Tensor>);
};

// "Square" for typeid(Square).name(). Lives as long as the library that the class is in.
class ClassName {
 public:
  explicit ClassName(const char* name) : name_(name) {
    int status = 0;
    text_ = ::abi::__cxa_demangle(name, nullptr, nullptr, &status);
  }
  ~ClassName() { ::free(text_); }
  ClassName(const ClassName&) = delete;
  ClassName& operator=(const ClassName&) = delete;
  const char* get() const { return text_ != nullptr ? text_ : name_; }

 private:
  const char* name_;
  char* text_;
};

// What a node of a Function holds. Context is AutogradContext here and below, and a parameter so
// that a file without Functions compiles nothing of this.
template <class Context>
class FunctionState {
 public:
  explicit FunctionState(const FunctionClass& type) : type_(&type) {
    ctx_.name_ = type.node_class.name;
  }

  // The callbacks of lamella_node_class.
  static lamella_status apply(void* context, lamella_tensor* const* grads, uint32_t grad_count,
                              lamella_tensor** results, uint32_t result_count) {
    return detail::guarded([&] {
      static_cast<FunctionState*>(context)->backward(grads, grad_count, results, result_count);
    });
  }
  static void release_saved(void* context) {
    static_cast<FunctionState*>(context)->ctx_.release_saved();
  }
  static void dispose(void* context) { delete static_cast<FunctionState*>(context); }

 private:
  friend class FunctionCall<Context>;

  // An output that is not connected to the node: it has no gradient, or was returned before.
  struct Unconnected {
    uint32_t index;
    std::vector<int64_t> sizes;
    TensorOptions options;
  };

  Tensor zeros_of_output(uint32_t i) const {
    for (const Unconnected& output : unconnected_) {
      if (output.index == i) return zeros(output.sizes, output.options);
    }
    lamella_tensor* result = nullptr;
    check(lamella_node_zeros(ctx_.node_, i, &result));
    return Tensor(TensorBase::adopt(result));
  }

  void backward(lamella_tensor* const* grads, uint32_t grad_count, lamella_tensor** results,
                uint32_t result_count) {
    std::vector<Tensor> given;
    given.reserve(grad_count);
    for (uint32_t i = 0; i < grad_count; ++i) {
      if (grads[i] == nullptr && ctx_.materialize_grads_) {
        given.push_back(zeros_of_output(i));
      } else {
        given.emplace_back(TensorBase::borrow(grads[i]));
      }
    }
    std::vector<Tensor> got = type_->backward(&ctx_, std::move(given));

    // Undefined tensors beyond the last argument are ignored.
    while (got.size() > is_tensor_.size() && !got.back().defined()) got.pop_back();
    LAMELLA_CHECK(got.size() == is_tensor_.size(), ctx_.name_,
                  ": expected backward to return a gradient for each of the ", is_tensor_.size(),
                  " arguments of forward, got ", got.size());
    for (size_t i = 0; i < got.size(); ++i) {
      LAMELLA_CHECK(is_tensor_[i] || !got[i].defined(), ctx_.name_,
                    ": expected backward to return an undefined tensor for argument ", i,
                    " of forward, which is no tensor, got one of shape ", got[i].sizes());
    }
    uint32_t next = 0;
    for (size_t i = 0; i < got.size() && next < result_count; ++i) {
      if (is_tensor_[i]) results[next++] = got[i].unsafe_release();
    }
  }

  Context ctx_;
  const FunctionClass* type_;
  std::vector<bool> is_tensor_;  // for each argument of forward, lists entry by entry
  std::vector<Unconnected> unconnected_;
};

// One call of a Function, from its arguments to its outputs.
template <class Context>
class FunctionCall {
 public:
  explicit FunctionCall(const FunctionClass& type) : local_(type), state_(&local_) {}
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  template <class A>
  void add_argument(const A& argument) {
    if constexpr (std::is_base_of_v<TensorBase, A>) {
      add_tensor(argument);
    } else {
      add_other(argument);
    }
  }

  // Called after the last argument was added: makes the node if this call is recorded.
  void begin() {
    if (recorded_) recorded_ = GradMode::is_enabled();
    LAMELLA_CHECK_NOT_IMPLEMENTED(
        !has_tangent_ || (lamella_thread.modes & LAMELLA_MODE_NO_FORWARD) != 0, local_.ctx_.name_,
        ": expected tensors without a tangent, because a function written in C++ has no forward "
        "mode");
    if (!recorded_) return;
    const FunctionClass& type = *local_.type_;
    state_ = new FunctionState<Context>(type);
    state_->is_tensor_ = std::move(local_.is_tensor_);
    lamella_node* node = nullptr;
    check(lamella_node_make(&type.node_class, state_, &node));
    node_ = autograd::GraphNodePtr::adopt(node);
    state_->ctx_.node_ = node;
    check(lamella_node_set_inputs(node, tensor_pointers(TensorList(inputs_)),
                                  static_cast<uint32_t>(inputs_.size())));
  }
  Context* context() { return &state_->ctx_; }

  // Connects the outputs of forward to the node.
  void end(std::vector<Tensor>& outputs) {
    Context& ctx = state_->ctx_;
    for (const Tensor& tensor : ctx.dirty_) {
      LAMELLA_CHECK(contains(inputs_, tensor), ctx.name_,
                    ": expected mark_dirty to be given inputs of forward, got another tensor");
      LAMELLA_CHECK(contains(outputs, tensor), ctx.name_,
                    ": expected forward to return each input that it marked dirty");
      lamella_tensor_bump_version(tensor.impl());
    }
    {
      ModesGuard guard(LAMELLA_MODE_NO_GRAD, LAMELLA_MODE_NO_GRAD);
      for (size_t i = 0; i < outputs.size(); ++i) end_output(outputs, i);
    }
    if (recorded_) ctx.save_outputs_and_inputs();
    ctx.dirty_.clear();
    ctx.non_differentiable_.clear();
  }

 private:
  void add_tensor(const TensorBase& tensor) {
    local_.is_tensor_.push_back(true);
    inputs_.emplace_back(tensor);
    recorded_ = recorded_ || inputs_.back().requires_grad();
    has_tangent_ =
        has_tangent_ || (tensor.defined() && (tensor.impl()->flags & LAMELLA_TENSOR_TANGENT) != 0);
  }
  template <class A>
  void add_other(const A&) {
    local_.is_tensor_.push_back(false);
  }
  template <class A>
  void add_other(const std::optional<A>& argument) {
    bool is_tensor = false;
    if constexpr (std::is_base_of_v<TensorBase, A>) {
      is_tensor = argument.has_value() && argument->defined();
      if (is_tensor) add_tensor(*argument);
    }
    if (!is_tensor) local_.is_tensor_.push_back(false);
  }
  template <class A>
  void add_other(const ArrayRef<A>& list) {
    if constexpr (is_gradient_list<A>) {
      for (const A& entry : list) add_argument(entry);
    } else {
      local_.is_tensor_.push_back(false);
    }
  }
  template <class A, class Allocator>
  void add_other(const std::vector<A, Allocator>& list) {
    if constexpr (is_gradient_list<A>) {
      for (const A& entry : list) add_argument(entry);
    } else {
      local_.is_tensor_.push_back(false);
    }
  }
  template <class A, size_t N>
  void add_other(const std::array<A, N>& list) {
    if constexpr (is_gradient_list<A>) {
      for (const A& entry : list) add_argument(entry);
    } else {
      local_.is_tensor_.push_back(false);
    }
  }
  template <class A>
  struct IsOptionalTensor : std::false_type {};
  template <class A>
  struct IsOptionalTensor<std::optional<A>> : std::is_base_of<TensorBase, A> {};
  template <class A>
  static constexpr bool is_gradient_list =
      std::is_base_of_v<TensorBase, A> || IsOptionalTensor<A>::value;

  static bool contains(const std::vector<Tensor>& list, const Tensor& tensor) {
    for (const Tensor& entry : list) {
      if (entry.is_same(tensor)) return true;
    }
    return false;
  }
  static bool contains_before(const std::vector<Tensor>& list, size_t end) {
    for (size_t i = 0; i < end; ++i) {
      if (list[i].is_same(list[end])) return true;
    }
    return false;
  }

  void end_output(std::vector<Tensor>& outputs, size_t i) {
    Context& ctx = state_->ctx_;
    Tensor& output = outputs[i];
    bool written = output.defined() && contains(ctx.dirty_, output);
    bool again = contains_before(outputs, i);
    bool differentiable = recorded_ && output.defined() && !again &&
                          (output.is_floating_point() || output.is_complex()) &&
                          !contains(ctx.non_differentiable_, output);
    // A tensor that already has a history, such as an input returned unchanged, gets no other.
    if (output.defined() && !written && !again &&
        (contains(inputs_, output) || output.requires_grad())) {
      output = differentiable ? output.alias() : output.detach();
    }
    if (!recorded_) return;
    if (output.defined() && !differentiable) {
      state_->unconnected_.push_back(
          {static_cast<uint32_t>(i), output.sizes().vec(), output.options()});
    }
    check(lamella_node_add_output(ctx.node_, differentiable ? output.impl() : nullptr,
                                  written && differentiable ? 1 : 0));
  }

  FunctionState<Context> local_;  // of a call that is not recorded
  FunctionState<Context>* state_;
  autograd::GraphNodePtr node_;
  std::vector<Tensor> inputs_;
  bool recorded_ = false;
  bool has_tangent_ = false;
};

// Converts the result of forward to a list, and a list to the result of apply().
template <class R>
struct FunctionOutputs {
  static_assert(std::is_base_of_v<TensorBase, R>,
                "forward returns a Tensor, a std::vector<Tensor> or a std::tuple of Tensors");
  using Type = autograd::Applied;
  static std::vector<Tensor> list(R&& output) { return {Tensor(std::move(output))}; }
  static Type result(std::vector<Tensor>&& list) { return Type(std::move(list[0])); }
};
template <class Allocator>
struct FunctionOutputs<std::vector<Tensor, Allocator>> {
  using Type = std::vector<Tensor, Allocator>;
  static Type list(Type&& outputs) { return std::move(outputs); }
  static Type result(Type&& list) { return std::move(list); }
};
template <class... R>
struct FunctionOutputs<std::tuple<R...>> {
  static_assert((std::is_base_of_v<TensorBase, R> && ...),
                "forward returns a Tensor, a std::vector<Tensor> or a std::tuple of Tensors");
  using Type = std::tuple<R...>;
  static std::vector<Tensor> list(Type&& outputs) {
    return std::apply([](auto&&... each) { return std::vector<Tensor>{Tensor(each)...}; },
                      std::move(outputs));
  }
  static Type result(std::vector<Tensor>&& list) {
    return result(std::move(list), std::index_sequence_for<R...>());
  }
  template <size_t... I>
  static Type result(std::vector<Tensor>&& list, std::index_sequence<I...>) {
    return Type(R(std::move(list[I]))...);
  }
};

}  // namespace detail

namespace autograd {

// Derive from Function<T> and give T two static functions:
//   forward(AutogradContext*, arguments...): Tensor, std::vector<Tensor> or a tuple of Tensors;
//     runs without recording.
//   backward(AutogradContext*, variable_list): takes a gradient for each output, returns one for
//     each argument of forward: for a tensor its gradient or an undefined tensor, for a list of
//     tensors one for each entry, for any other argument an undefined tensor.
// Arguments whose gradients are recorded are Tensors, optional Tensors, and lists (TensorList,
// std::vector, std::array) of either. The calls of backward are recorded as well with
// create_graph. Exceptions of both leave apply() or backward() with their text.
template <class T>
struct Function {
  static constexpr bool is_traceable = false;

  // Calls forward and records the call, if an argument requires gradients and recording is on.
  // Throws NotImplementedError for tensors with a forward-mode tangent.
  template <class... A>
  static auto apply(A&&... arguments) {
    using Outputs = detail::FunctionOutputs<
        std::decay_t<decltype(T::forward(nullptr, std::forward<A>(arguments)...))>>;
    detail::FunctionCall<AutogradContext> call(type());
    (call.add_argument(arguments), ...);
    call.begin();
    std::vector<Tensor> outputs = [&] {
      detail::ModesGuard guard(LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_NO_FORWARD,
                               LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_NO_FORWARD);
      return Outputs::list(T::forward(call.context(), std::forward<A>(arguments)...));
    }();
    call.end(outputs);
    return Outputs::result(std::move(outputs));
  }

 private:
  LAMELLA_HIDDEN static const detail::FunctionClass& type() {
    using State = detail::FunctionState<AutogradContext>;
    static const detail::ClassName name(typeid(T).name());
    static const detail::FunctionClass type = {
        {name.get(), &State::apply, &State::release_saved, &State::dispose},
        [](AutogradContext* ctx, std::vector<Tensor> grads) -> std::vector<Tensor> {
          return T::backward(ctx, std::move(grads));
        }};
    return type;
  }
};

}  // namespace autograd
}  // namespace lamella
