// CppFunction: a kernel as it is handed to Library::impl, from a function, a compile-time function,
// a lambda, a functor, or a boxed function.
#pragma once
#include "lamella/dispatch/operator_handle.h"
#include "lamella/dispatch/schema_text.h"

namespace lamella {

// A function known at compile time; LAMELLA_FN(f) names one. The call to it can be inlined.
template <auto f>
struct CompileTimeFunction {
  using FuncType = std::remove_pointer_t<decltype(f)>;
  static constexpr auto function = f;
  static constexpr auto func_ptr() { return f; }
};
#define LAMELLA_FN(f) (::lamella::CompileTimeFunction<f>())

namespace detail {

template <class T>
struct is_compile_time_function : std::false_type {};
template <auto f>
struct is_compile_time_function<CompileTimeFunction<f>> : std::true_type {};

// Function type of a function pointer or of a functor's operator().
template <class T>
struct FunctionType : FunctionType<decltype(&T::operator())> {};
template <class R, class... A>
struct FunctionType<R(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct FunctionType<R (*)(A...)> : FunctionType<R(A...)> {};
template <class R, class... A>
struct FunctionType<R (*)(A...) noexcept> : FunctionType<R(A...)> {};
template <class C, class R, class... A>
struct FunctionType<R (C::*)(A...)> : FunctionType<R(A...)> {};
template <class C, class R, class... A>
struct FunctionType<R (C::*)(A...) const> : FunctionType<R(A...)> {};

// A kernel may take the key set as its first parameter, and return a `const std::string`; the
// schema does not know of either.
template <class T>
struct Schema;
template <class R, class... A>
struct Schema<R(A...)> {
  using type = std::remove_cv_t<R>(A...);
  static constexpr bool takes_keys = false;
};
template <class R, class... A>
struct Schema<R(DispatchKeySet, A...)> {
  using type = std::remove_cv_t<R>(A...);
  static constexpr bool takes_keys = true;
};

// How to reach the callable from the kernel's context.
template <auto f>
struct InvokeConstant {
  template <class... A>
  [[gnu::always_inline]] static inline decltype(auto) invoke(void*, uint64_t keys,
                                                             A&&... arguments) {
    if constexpr (Schema<typename FunctionType<decltype(f)>::type>::takes_keys) {
      return f(DispatchKeySet(DispatchKeySet::RAW, keys), std::forward<A>(arguments)...);
    } else {
      return f(std::forward<A>(arguments)...);
    }
  }
};
template <class P>
struct InvokePointer {
  template <class... A>
  static decltype(auto) invoke(void* context, uint64_t keys, A&&... arguments) {
    P f = reinterpret_cast<P>(context);
    if constexpr (Schema<typename FunctionType<P>::type>::takes_keys) {
      return f(DispatchKeySet(DispatchKeySet::RAW, keys), std::forward<A>(arguments)...);
    } else {
      return f(std::forward<A>(arguments)...);
    }
  }
};
template <class F>
struct InvokeFunctor {
  template <class... A>
  static decltype(auto) invoke(void* context, uint64_t keys, A&&... arguments) {
    F& f = *static_cast<F*>(context);
    if constexpr (Schema<typename FunctionType<F>::type>::takes_keys) {
      return f(DispatchKeySet(DispatchKeySet::RAW, keys), std::forward<A>(arguments)...);
    } else {
      return f(std::forward<A>(arguments)...);
    }
  }
};

// Boxed kernels, in three spellings. The last works on the caller's values without a copy.
using BoxedStackFunction = void(const OperatorHandle&, Stack*);
using BoxedStackKeysFunction = void(const OperatorHandle&, DispatchKeySet, Stack*);
using BoxedSpanFunction = void(const OperatorHandle&, DispatchKeySet, ArgumentSpan, ReturnSpan);

template <class F>
inline constexpr bool is_boxed_function =
    std::is_same_v<F, BoxedStackFunction> || std::is_same_v<F, BoxedStackKeysFunction> ||
    std::is_same_v<F, BoxedSpanFunction>;

inline void run_with_stack(const lamella_operator* op, const lamella_value* arguments,
                           lamella_value* returns, auto&& body) {
  typename Later<decltype(body), Stack>::type stack;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    stack.push_back(IValue::from_borrowed(arguments[i]));
  }
  body(&stack);
  // What it leaves for an operator without returns is dropped.
  const bool fits = op->return_count == 0 || stack.size() == op->return_count;
  LAMELLA_CHECK(fits, op->name, ": expected its boxed kernel to leave ", op->return_count,
                " values on the stack, got ", stack.size());
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = stack[i].unsafe_release();
}

// Calls `f`, one of the three spellings, and turns what it throws into a status.
template <class F>
lamella_status call_boxed_function(F&& f, const lamella_operator* op, uint64_t keys,
                                   const lamella_value* arguments,
                                   lamella_value* returns) noexcept {
  using Fn = typename FunctionType<std::decay_t<F>>::type;
  DispatchKeySet set(DispatchKeySet::RAW, keys);
  OperatorHandle handle(op);
  try {
    if constexpr (std::is_same_v<Fn, BoxedSpanFunction>) {
      // None is all zeros; whole words, because a value is read back as one.
      auto* words = reinterpret_cast<uint64_t*>(returns);
      for (uint32_t left = op->return_count; left != 0; --left, words += 2) words[0] = words[1] = 0;
      f(handle, set, ArgumentSpan(arguments, op->argument_count),
        ReturnSpan(returns, op->return_count));
    } else if constexpr (std::is_same_v<Fn, BoxedStackKeysFunction>) {
      run_with_stack(op, arguments, returns, [&](Stack* stack) { f(handle, set, stack); });
    } else {
      run_with_stack(op, arguments, returns, [&](Stack* stack) { f(handle, stack); });
    }
    return LAMELLA_OK;
  } catch (...) {
    if constexpr (std::is_same_v<Fn, BoxedSpanFunction>) {
      for (uint32_t i = 0; i < op->return_count; ++i) lamella_value_release(returns + i);
    }
    return status_of_current_exception();
  }
}
template <auto f>
lamella_status boxed_constant(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                              const lamella_value* arguments, lamella_value* returns) {
  return call_boxed_function(f, op, keys, arguments, returns);
}
template <class P>
lamella_status boxed_pointer(const lamella_kernel* kernel, const lamella_operator* op,
                             uint64_t keys, const lamella_value* arguments,
                             lamella_value* returns) {
  return call_boxed_function(reinterpret_cast<P>(kernel->context), op, keys, arguments, returns);
}
template <class F>
lamella_status boxed_functor(const lamella_kernel* kernel, const lamella_operator* op,
                             uint64_t keys, const lamella_value* arguments,
                             lamella_value* returns) {
  return call_boxed_function(*static_cast<F*>(kernel->context), op, keys, arguments, returns);
}

}  // namespace detail

// The C++ signature of a kernel, in the letters of abi_types.h. make<F>: of a function, a pointer
// to one, a functor, or a lambda.
class CppSignature {
 public:
  template <class F>
  static CppSignature make() {
    using Function = std::remove_pointer_t<std::decay_t<F>>;
    using Fn = typename detail::FunctionType<Function>::type;
    return CppSignature(abi::Call<typename detail::Schema<Fn>::type>::signature());
  }
  LAMELLA_LAZY std::string name() const { return name_; }
  bool operator==(const CppSignature& other) const {
    return __builtin_strcmp(name_, other.name_) == 0;
  }

 private:
  explicit CppSignature(const char* name) : name_(name) {}
  const char* name_;
};

// Move-only description of a kernel. Holds a functor's copy until it is registered.
class CppFunction {
 public:
  // A function known at compile time: LAMELLA_FN(f).
  template <auto f>
  explicit CppFunction(CompileTimeFunction<f>) {
    using Fn = typename detail::FunctionType<decltype(f)>::type;
    if constexpr (detail::is_boxed_function<Fn>) {
      description_.boxed = &detail::boxed_constant<f>;
    } else {
      set_typed<Fn, detail::InvokeConstant<f>>();
    }
  }
  // A function pointer.
  template <class R, class... A>
  explicit CppFunction(R (*f)(A...)) {
    using P = R (*)(A...);
    description_.context = reinterpret_cast<void*>(f);
    if constexpr (detail::is_boxed_function<R(A...)>) {
      description_.boxed = &detail::boxed_pointer<P>;
    } else {
      set_typed<R(A...), detail::InvokePointer<P>>();
    }
  }
  // A lambda or functor; copied and kept as long as it is registered.
  template <class F,
            class = std::enable_if_t<std::is_class_v<std::decay_t<F>> &&
                                     !std::is_same_v<std::decay_t<F>, CppFunction> &&
                                     !detail::is_compile_time_function<std::decay_t<F>>::value>>
  explicit CppFunction(F&& functor) {
    using D = std::decay_t<F>;
    using Fn = typename detail::FunctionType<D>::type;
    description_.context = new D(std::forward<F>(functor));
    description_.dispose = [](void* context) { delete static_cast<D*>(context); };
    if constexpr (detail::is_boxed_function<Fn>) {
      description_.boxed = &detail::boxed_functor<D>;
    } else {
      set_typed<Fn, detail::InvokeFunctor<D>>();
    }
  }
  CppFunction(CppFunction&& other) noexcept
      : description_(other.description_),
        signature_(other.signature_),
        whole_schema_(other.whole_schema_),
        key_(other.key_) {
    other.description_.dispose = nullptr;
    other.description_.context = nullptr;
  }
  CppFunction(const CppFunction&) = delete;
  CppFunction& operator=(const CppFunction&) = delete;
  CppFunction& operator=(CppFunction&&) = delete;
  ~CppFunction() {
    if (description_.dispose != nullptr) description_.dispose(description_.context);
  }

  // A fallthrough: the call continues at the next key.
  static CppFunction makeFallthrough() { return CppFunction(Empty()); }
  template <auto* f>
  static CppFunction makeFromBoxedFunction() {
    return CppFunction(CompileTimeFunction<f>());
  }
  LAMELLA_LAZY static CppFunction makeFromBoxedFunction(detail::BoxedSpanFunction* f) {
    return CppFunction(f);
  }
  // A boxed kernel in the form of the C ABI.
  static CppFunction makeFromBoxedKernel(lamella_boxed_function f) {
    CppFunction function{Empty()};
    function.description_.boxed = f;
    return function;
  }
  template <class F>
  static CppFunction makeFromBoxedFunctor(F functor) {
    return CppFunction(std::move(functor));
  }
  template <class F>
  static CppFunction makeFromUnboxedFunction(F* f) {
    return CppFunction(f);
  }
  template <auto f>
  static CppFunction makeFromUnboxedFunction(CompileTimeFunction<f> function) {
    return CppFunction(function);
  }
  template <class F>
  static CppFunction makeFromUnboxedRuntimeFunction(F* f) {
    return CppFunction(f);
  }
  template <class F>
  static CppFunction makeFromUnboxedLambda(F&& f) {
    return CppFunction(std::forward<F>(f));
  }
  // The key to register for, where it is not the block's.
  CppFunction&& with_key(DispatchKey key) && {
    key_ = key;
    return std::move(*this);
  }
  DispatchKey key() const { return key_; }
  // Empty for a boxed function.
  LAMELLA_LAZY std::string_view signature() const {
    return signature_ != nullptr ? signature_ : "";
  }
  // The schema, without its name, that the function stands for where the letters of its signature
  // do not tell it; else "". Throws if its types stand for none.
  LAMELLA_LAZY std::string whole_schema() const {
    return whole_schema_ != nullptr ? whole_schema_() : "";
  }
  // Ready to be registered; the receiver owns the context from then on.
  lamella_kernel_description release(const char* file, uint32_t line) {
    lamella_kernel_description d = description_;
    d.signature = signature_;
    d.file = file;
    d.line = line;
    description_.dispose = nullptr;
    return d;
  }

 protected:
  struct Empty {};
  explicit CppFunction(Empty) {}
  template <class Fn, class Invoke>
  void set_typed() {
    using S = typename detail::Schema<Fn>::type;
    description_.typed =
        reinterpret_cast<lamella_typed_function>(&abi::TypedKernel<Invoke, S>::call);
    description_.boxed = &abi::Call<S>::boxed;
    signature_ = abi::Call<S>::signature();
    if constexpr (abi::SignatureText<S>::kTellsMore) {
      whole_schema_ = [] { return abi::SignatureText<S>::get(); };
    }
  }

  lamella_kernel_description description_{};
  const char* signature_ = nullptr;
  std::string (*whole_schema_)() = nullptr;
  DispatchKey key_ = DispatchKey::None;
};

// The key of a block of registrations, or none: an optional that costs no instantiation.
struct BlockKey {
  BlockKey(DispatchKey key) : key(key) {}               // NOLINT: implicit
  BlockKey(std::nullopt_t) : key(DispatchKey::None) {}  // NOLINT: implicit
  template <class Key>
  BlockKey(const std::optional<Key>& key) : key(key.value_or(DispatchKey::None)) {}  // NOLINT

  DispatchKey key;
};

// A kernel for a key other than its block's: m.impl("f", dispatch(DispatchKey::CPU, f)).
template <class F>
CppFunction dispatch(DispatchKey key, F&& f) {
  if constexpr (std::is_base_of_v<CppFunction, std::decay_t<F>>) {
    return std::move(f).with_key(key);
  } else {
    return CppFunction(std::forward<F>(f)).with_key(key);
  }
}

// The same for the key of a device.
template <class F>
CppFunction dispatch(DeviceType type, F&& f) {
  return dispatch(
      DispatchKeySet::from_raw_repr(default_key_set(type, true)).highestPriorityTypeId(),
      std::forward<F>(f));
}

}  // namespace lamella
