// Dispatcher: finds operators, calls them, registers definitions and kernels one at a time.
#pragma once
#include "lamella/abi/operators.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/kernel_function.h"

namespace lamella {

// Undoes a registration when it is destroyed. Destruction waits until no other thread is inside the
// kernel; calls that begin later see the operator without it.
class RegistrationHandleRAII {
 public:
  RegistrationHandleRAII() = default;
  explicit RegistrationHandleRAII(lamella_library* library)
      : context_(library),
        undo_([](void* closed) { lamella_library_close(static_cast<lamella_library*>(closed)); }) {}
  // `undo` is called once, with no argument.
  template <class F>
    requires std::is_invocable_v<F&>
  explicit RegistrationHandleRAII(F undo)
      : context_(new F(std::move(undo))), undo_([](void* kept) {
          F* f = static_cast<F*>(kept);
          (*f)();
          delete f;
        }) {}
  RegistrationHandleRAII(RegistrationHandleRAII&& other) noexcept
      : context_(other.context_), undo_(detail::take(other.undo_)) {}
  RegistrationHandleRAII& operator=(RegistrationHandleRAII&& other) noexcept {
    detail::swap_plain(context_, other.context_);
    detail::swap_plain(undo_, other.undo_);
    return *this;
  }
  ~RegistrationHandleRAII() {
    if (undo_ != nullptr) undo_(context_);
  }

 private:
  void* context_ = nullptr;
  void (*undo_)(void*) = nullptr;
};

// The one table of operators. Look-ups and calls are wait-free while others register.
class Dispatcher {
 public:
  LAMELLA_HIDDEN static Dispatcher& singleton() {
    static Dispatcher dispatcher;
    return dispatcher;
  }

  // The operator if it is defined.
  template <class Handle = OperatorHandle>
  std::optional<Handle> findSchema(const OperatorId& name) const {
    return lookup<Handle>(name, 1);
  }
  // The operator if anything was registered under the name.
  template <class Handle = OperatorHandle>
  std::optional<Handle> findOp(const OperatorId& name) const {
    std::optional<Handle> op = lookup<Handle>(name, 0);
    if (op && !op->hasSchema() && !op->hasKernelForAnyDispatchKey()) return std::nullopt;
    return op;
  }
  // Fails with the names that are near.
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload_name) const {
    const lamella_operator* op = nullptr;
    detail::check(lamella_find_operator(name, overload_name, &op));
    return OperatorHandle(op);
  }

  // The operators that have a kernel for the key, or all of them.
  LAMELLA_LAZY detail::Lazily<lazy_, std::vector<OperatorId>> getRegistrationsForDispatchKey(
      BlockKey given) const {
    const DispatchKey key = given.key;
    detail::Lazily<lazy_, std::vector<OperatorId>> names;
    each_operator([&](const OperatorHandle& op) {
      if (key == DispatchKey::None || op.hasKernelForDispatchKey(key))
        names.push_back(op.operator_name());
    });
    return names;
  }
  // The operators that have kernels and were never declared.
  LAMELLA_LAZY detail::Lazily<lazy_, std::vector<OperatorHandle>> findDanglingImpls() const {
    detail::Lazily<lazy_, std::vector<OperatorHandle>> dangling;
    each_operator([&](const OperatorHandle& op) {
      if (!op.hasSchema() && op.hasKernelForAnyDispatchKey()) dangling.push_back(op);
    });
    return dangling;
  }
  // Tells the listener of each operator there is, then of each one that is defined or ends, until
  // the result is destroyed.
  template <class Owner>
  RegistrationHandleRAII addRegistrationListener(Owner listener) {
    using Listener = typename Owner::element_type;
    each_operator([&](const OperatorHandle& op) {
      if (op.hasSchema()) listener->onOperatorRegistered(op);
    });
    Listener* kept = listener.release();
    detail::check(lamella_watch_operators(
        [](void* context, const lamella_operator* op, int32_t defined) {
          auto* told = static_cast<Listener*>(context);
          if (defined != 0) {
            told->onOperatorRegistered(OperatorHandle(op));
          } else {
            told->onOperatorDeregistered(OperatorHandle(op));
          }
        },
        kept));
    return RegistrationHandleRAII([kept] {
      lamella_unwatch_operators(kept);
      delete kept;
    });
  }

  template <class R, class... A>
  R call(const TypedOperatorHandle<R(A...)>& op, A... arguments) const {
    return op.call(std::forward<A>(arguments)...);
  }
  template <class R, class... A>
  R redispatch(const TypedOperatorHandle<R(A...)>& op, DispatchKeySet keys, A... arguments) const {
    return op.redispatch(keys, std::forward<A>(arguments)...);
  }
  LAMELLA_LAZY void callBoxed(const OperatorHandle& op, Stack* stack) const { op.callBoxed(stack); }
  LAMELLA_LAZY void redispatchBoxed(const OperatorHandle& op, DispatchKeySet keys,
                                    Stack* stack) const {
    op.redispatchBoxed(keys, stack);
  }

  // Defines one operator; `debug` says where.
  LAMELLA_LAZY RegistrationHandleRAII registerDef(const char* schema,
                                                  const char* debug = "registerDef") {
    Block block(schema, LAMELLA_LIBRARY_FRAGMENT, debug);
    detail::check(lamella_library_define(block.library, schema, nullptr, nullptr, debug, 0));
    return block.keep();
  }
  // Registers one kernel.
  LAMELLA_LAZY RegistrationHandleRAII registerImpl(const OperatorId& name, BlockKey key,
                                                   CppFunction kernel,
                                                   const char* debug = "registerImpl") {
    Block block(name.name.c_str(), LAMELLA_LIBRARY_IMPL, debug);
    lamella_kernel_description description = kernel.release(debug, 0);
    detail::check(lamella_library_implement(block.library, toString(name).c_str(),
                                            static_cast<uint16_t>(key.key), &description));
    return block.keep();
  }
  // The same from the parts that PyTorch hands over: the kernel knows its signature itself, and the
  // schema that would be inferred from it follows from that.
  template <class InferredSchema>
  RegistrationHandleRAII registerImpl(const OperatorId& name, BlockKey key, CppFunction kernel,
                                      const std::optional<CppSignature>&, InferredSchema&&,
                                      const std::string& debug) {
    return registerImpl(name, key, std::move(kernel), debug.c_str());
  }
  // Registers a boxed kernel for every operator that has none for the key.
  LAMELLA_LAZY RegistrationHandleRAII registerFallback(DispatchKey key, CppFunction kernel,
                                                       const char* debug = "registerFallback") {
    Block block("_::", LAMELLA_LIBRARY_IMPL, debug);
    lamella_kernel_description description = kernel.release(debug, 0);
    detail::check(
        lamella_library_fallback(block.library, static_cast<uint16_t>(key), &description));
    return block.keep();
  }

 private:
  template <class F>
  static void each_operator(F&& visit) {
    detail::check(lamella_visit_all_operators(
        [](void* context, const lamella_operator* op) {
          return detail::guarded([&] { (*static_cast<F*>(context))(OperatorHandle(op)); });
        },
        &visit));
  }
  struct Block {
    LAMELLA_LAZY Block(const char* qualified_name, int32_t kind, const char* debug) {
      const char* end = __builtin_strstr(qualified_name, "::");
      std::string name_space;
      if (end != nullptr)
        append(name_space, std::string_view(qualified_name, end - qualified_name));
      detail::check(lamella_library_open(kind, name_space.empty() ? "aten" : name_space.c_str(),
                                         static_cast<uint16_t>(DispatchKey::None), debug, 0,
                                         &library));
    }
    ~Block() {
      if (library != nullptr) lamella_library_close(library);
    }
    LAMELLA_LAZY RegistrationHandleRAII keep() {
      RegistrationHandleRAII handle(library);
      library = nullptr;
      return handle;
    }
    lamella_library* library = nullptr;
  };
  template <class Handle>
  static std::optional<Handle> lookup(const OperatorId& name, int32_t defined) {
    const lamella_operator* op =
        lamella_lookup_operator(name.name.c_str(), name.overload_name.c_str(), defined);
    if (op == nullptr) return std::nullopt;
    return Handle(op);
  }
};

}  // namespace lamella
