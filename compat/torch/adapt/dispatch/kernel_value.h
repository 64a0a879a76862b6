// KernelFunction: a kernel that can be called by hand, on values or on a stack, before it is
// registered or without.
#pragma once
#include "lamella/dispatch/dispatcher.h"
#include "lamella/dispatch/whole_values.h"

namespace lamella {

// The base class of kernels written as functors, for code that names it. Any functor works as well.
struct LAMELLA_PUBLIC OperatorKernel {
  virtual ~OperatorKernel() = default;
};

namespace detail {
// A functor that is owned through its base class, taken over from a std::unique_ptr.
template <class Functor, class Fn = typename FunctionType<Functor>::type>
struct HeldFunctor;
template <class Functor, class R, class... A>
struct HeldFunctor<Functor, R(A...)> {
  explicit HeldFunctor(Functor* given) : functor(given) {}
  HeldFunctor(HeldFunctor&& other) noexcept : functor(take(other.functor)) {}
  ~HeldFunctor() { delete functor; }
  R operator()(A... arguments) { return (*functor)(std::forward<A>(arguments)...); }
  Functor* functor;
};

template <auto f>
struct FunctionType<CompileTimeFunction<f>> : FunctionType<decltype(f)> {};

template <class Fn>
struct KernelCounts;
template <class R, class... A>
struct KernelCounts<R(A...)> {
  static constexpr size_t arguments = sizeof...(A), returns = abi::Result<R>::count;
};

// What a typed call returns of the values that a boxed one left.
template <class R>
struct FromStack {
  template <class Refs, class... A>
  static R get(Stack& stack, A&...) {
    if constexpr (abi::is_tuple<R>::value) {
      return abi::FromValue<R>::get(IValue::tuple(stack));
    } else if constexpr (!std::is_void_v<R>) {
      return abi::FromValue<R>::get(stack[0]);
    }
  }
};
template <class R>
  requires(std::is_reference_v<R> ||
           requires {
             typename abi::Result<R>::Forms;
             requires abi::is_tuple<R>::value &&
                          std::is_same_v<typename abi::Result<R>::Forms, abi::NoForms>;
           })
struct FromStack<R> {
  template <class Refs, class... A>
  static R get(Stack&, A&... arguments) {
    abi::NoForms none;
    return abi::Result<R>::template load<Refs>(none, arguments...);
  }
};
}  // namespace detail

class KernelFunction : public CppFunction {
 public:
  KernelFunction() : KernelFunction(CppFunction::makeFallthrough()) {}
  explicit KernelFunction(CppFunction&& function) : CppFunction(std::move(function)) {}
  KernelFunction(KernelFunction&&) = default;

  static KernelFunction makeFallthrough() { return KernelFunction(); }
  template <auto* f>
  static KernelFunction makeFromBoxedFunction() {
    KernelFunction kernel{CppFunction(CompileTimeFunction<f>())};
    kernel.on_stack_ = [](void*, const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
      if constexpr (std::is_same_v<std::remove_pointer_t<decltype(f)>,
                                   detail::BoxedStackFunction>) {
        f(op, stack);
      } else {
        f(op, keys, stack);
      }
    };
    return kernel;
  }
  // A functor that is called with the operator, the keys and the stack.
  template <class Owner>
  static KernelFunction makeFromBoxedFunctor(Owner functor) {
    using Functor = typename Owner::element_type;
    using Held = detail::HeldFunctor<Functor, detail::BoxedStackKeysFunction>;
    KernelFunction kernel{CppFunction(Held(functor.release()))};
    kernel.on_stack_ = [](void* context, const OperatorHandle& op, DispatchKeySet keys,
                          Stack* stack) { (*static_cast<Held*>(context))(op, keys, stack); };
    return kernel;
  }
  // The functor is given as a std::unique_ptr<OperatorKernel>.
  template <bool = false, class Functor, class Owner>
  static KernelFunction makeFromUnboxedFunctor(Owner functor) {
    return typed(detail::HeldFunctor<Functor>(static_cast<Functor*>(functor.release())));
  }
  template <class F>
  static KernelFunction makeFromUnboxedFunction(F f) {
    return typed(f);
  }
  template <bool = false, class F>
  static KernelFunction makeFromUnboxedRuntimeFunction(F* f) {
    return typed(f);
  }
  template <bool = false, class F>
  static KernelFunction makeFromUnboxedLambda(F&& f) {
    return typed(std::forward<F>(f));
  }

  bool isValid() const { return description_.boxed != nullptr; }
  bool isValidUnboxed() const { return description_.typed != nullptr; }
  bool isFallthrough() const { return description_.boxed == nullptr; }

  // Takes the arguments from the end of the stack and leaves the returns there. `op` need not have
  // the kernel's schema.
  void callBoxed(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) const {
    if (on_stack_ != nullptr) return on_stack_(description_.context, op, keys, stack);
    LAMELLA_CHECK(isValid(), "KernelFunction: expected a kernel to call, got a fallthrough");
    LAMELLA_CHECK(stack->size() >= arguments_, op.impl()->name, ": expected ", arguments_,
                  " arguments on the stack, got ", stack->size());
    const lamella_kernel kernel{description_.typed, description_.boxed, description_.context};
    ValueBuffer returns(static_cast<uint32_t>(returns_));
    const IValue* first = stack->data() + (stack->size() - arguments_);
    detail::check(kernel.boxed(&kernel, op.impl(), keys.raw_repr(),
                               reinterpret_cast<const lamella_value*>(first), returns.data()));
    drop(stack, arguments_);
    for (size_t i = 0; i < returns_; ++i) stack->push_back(IValue::adopt(returns[i]));
  }
  template <class R, class... A>
  R call(const OperatorHandle& op, DispatchKeySet keys, A... arguments) const {
    Stack stack{abi::ToValue<abi::Decayed<A>>::get(arguments)...};
    callBoxed(op, keys, &stack);
    return detail::FromStack<R>::template get<abi::References<A...>>(stack, arguments...);
  }

 private:
  template <class F>
  static KernelFunction typed(F&& f) {
    using Fn = typename detail::FunctionType<std::decay_t<F>>::type;
    using Counts = detail::KernelCounts<typename detail::Schema<Fn>::type>;
    KernelFunction kernel{CppFunction(std::forward<F>(f))};
    kernel.arguments_ = Counts::arguments;
    kernel.returns_ = Counts::returns;
    return kernel;
  }
  void (*on_stack_)(void* context, const OperatorHandle&, DispatchKeySet, Stack*) = nullptr;
  size_t arguments_ = 0, returns_ = 0;
};

}  // namespace lamella
