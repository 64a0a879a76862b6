// Call<R(A...)>: the code that depends only on a C++ signature and is shared by all operators that
// have it: the signature string, the arguments' key set, calling a kernel, boxing and unboxing.
#pragma once
#include "lamella/core/key_set.h"
#include "lamella/dispatch/abi_returns.h"

namespace lamella::abi {

// Marks a dispatched call in flight: Note [Deregistering while others call]. Nothing between enter
// and leave throws, and calls nest, so leave_call() restores the previous count.
[[gnu::always_inline]] inline uint32_t enter_call() {
  uint32_t before = lamella_thread.readers;
  __atomic_store_n(&lamella_thread.readers, before + 1, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return before;
}
[[gnu::always_inline]] inline void leave_call(uint32_t before) {
  __atomic_store_n(&lamella_thread.readers, before, __ATOMIC_RELEASE);
}
// The keys of a given set that the operator has kernels for.
[[gnu::always_inline]] inline uint64_t masked(const lamella_operator* op, uint64_t keys) {
  return keys & __atomic_load_n(&op->mask, __ATOMIC_RELAXED);
}
// The kernel that serves a key set. Valid only between enter_call and leave_call.
[[gnu::always_inline]] inline const lamella_kernel* kernel_of(const lamella_operator* op,
                                                              uint64_t keys) {
  return __atomic_load_n(&op->slots[detail::slot_of(keys)], __ATOMIC_ACQUIRE);
}
// A boxed call with a given key set.
[[gnu::always_inline]] inline lamella_status call_boxed(const lamella_operator* op, uint64_t keys,
                                                        const lamella_value* arguments,
                                                        lamella_value* returns) {
  uint32_t before = enter_call();
  const lamella_kernel* kernel = kernel_of(op, keys);
  lamella_status status = kernel->boxed(kernel, op, keys, arguments, returns);
  leave_call(before);
  return status;
}

// ---- Key sets of arguments ---------------------------------------------------------------------

struct KeySource {
  uint64_t keys = 0;
  uint64_t device = 0;  // of a Device argument: used if there is no tensor
};
inline uint64_t device_keys(Device device) { return default_key_set(device.type(), true); }
inline uint64_t generator_keys(const lamella_object* generator) {
  if (generator == nullptr || generator->reserved != LAMELLA_OBJECT_OF_GENERATOR) return 0;
  return reinterpret_cast<const lamella_generator_object*>(generator)->key_set;
}
template <class T>
inline void add_keys(KeySource& source, const T& value) {
  if constexpr (is_tensor<T>) {
    if (value.defined()) source.keys |= value.impl()->key_set;
  } else if constexpr (std::is_same_v<T, Device>) {
    source.device = device_keys(value);
  } else if constexpr (std::is_same_v<T, Generator>) {
    source.keys |= generator_keys(value.get());
  } else if constexpr (std::is_same_v<T, IValue>) {
    if (value.isTensor() && value.value().as.tensor)
      source.keys |= value.value().as.tensor->key_set;
  }
}
template <class T>
inline void add_keys(KeySource& source, const std::optional<T>& value) {
  if constexpr (is_tensor<T> || std::is_same_v<T, Device> || std::is_same_v<T, Generator>) {
    if (value) add_keys(source, *value);
  }
}
template <class T>
inline void add_keys(KeySource& source, ArrayRef<T> list) {
  if constexpr (is_tensor<T>) {
    for (const T& tensor : list) add_keys(source, tensor);
  }
}
template <class T>
inline void add_keys(KeySource& source, const std::vector<T>& list) {
  add_keys(source, ArrayRef<T>(list));
}
// Calls without a tensor go to the Device argument's backend, else to the CPU; those whose only
// tensors are undefined have no keys.
template <class... A>
[[gnu::always_inline]] inline uint64_t keys_of(const A&... arguments) {
  KeySource source;
  (add_keys(source, arguments), ...);
  if ((is_tensor<A> || ...) || source.keys != 0) return source.keys;
  return source.device != 0 ? source.device : device_keys(Device(DeviceType::CPU));
}
[[gnu::always_inline]] inline uint64_t with_thread(uint64_t keys, const lamella_operator* op,
                                                   const lamella_thread_state& thread) {
  uint64_t always = __atomic_load_n(&op->always, __ATOMIC_RELAXED);
  uint64_t mask = __atomic_load_n(&op->mask, __ATOMIC_RELAXED);
  return ((keys | thread.included | always) & ~thread.excluded) & mask;
}

// The same for boxed arguments.
[[gnu::always_inline]] inline uint64_t keys_of_values(const lamella_value* arguments,
                                                      uint32_t count) {
  KeySource source;
  bool has_tensor = false;
  for (uint32_t i = 0; i < count; ++i) {
    const lamella_value& value = arguments[i];
    if (value.tag == LAMELLA_TENSOR) {
      has_tensor = true;
      if (value.as.tensor != nullptr) source.keys |= value.as.tensor->key_set;
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) {
        if (list[k] != nullptr) source.keys |= list[k]->key_set;
      }
    } else if (value.tag == LAMELLA_DEVICE) {
      source.device = device_keys(IValue::unpack_device(value.as.i));
    } else if (value.tag == LAMELLA_GENERATOR) {
      source.keys |= generator_keys(static_cast<const lamella_object*>(value.as.pointer));
    }
  }
  if (has_tensor || source.keys != 0) return source.keys;
  return source.device != 0 ? source.device : device_keys(Device(DeviceType::CPU));
}

// ---- Positions of the arguments that are returned by reference --------------------------------

template <class... A>
struct References {
  static constexpr bool is_mutable(size_t i) {
    constexpr bool table[] = {
        (std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>> &&
         is_tensor<std::decay_t<A>>)...,
        false};
    return table[i];
  }
  static constexpr bool is_any_tensor(size_t i) {
    constexpr bool table[] = {is_tensor<std::decay_t<A>>..., false};
    return table[i];
  }
  // The position of the k-th mutable tensor, or of the first tensor if there is none.
  static constexpr size_t position(size_t k) {
    for (size_t i = 0; i < sizeof...(A); ++i) {
      if (is_mutable(i) && k-- == 0) return i;
    }
    for (size_t i = 0; i < sizeof...(A); ++i) {
      if (is_any_tensor(i)) return i;
    }
    return sizeof...(A);
  }
};

// ---- Results -----------------------------------------------------------------------------------

// How a return of type R is stored by a kernel, loaded, boxed and unboxed. Here: a single value.
template <class R, class = void>
struct Result {
  using Forms = typename Return<R>::Form;
  static constexpr size_t count = 1;
  static constexpr const char* codes[] = {Return<R>::code(), nullptr};
  static void store(R&& value, Forms* forms) { Return<R>::store(std::move(value), forms); }
  template <class Refs, class... A>
  static R load(Forms& forms, A&...) {
    return Return<R>::load(forms);
  }
  template <class Refs>
  static void box(Forms& forms, const lamella_value*, lamella_value* returns) {
    returns[0] = Return<R>::box(forms);
  }
  static bool unbox(const lamella_value* returns, Forms* forms) {
    return Return<R>::unbox(returns[0], forms);
  }
};
struct NoForms {};
template <>
struct Result<void> {
  using Forms = NoForms;
  static constexpr size_t count = 0;
  static constexpr const char* codes[] = {nullptr};
  template <class Refs, class... A>
  static void load(Forms&, A&...) {}
  template <class Refs>
  static void box(Forms&, const lamella_value*, lamella_value*) {}
  static bool unbox(const lamella_value*, Forms*) { return true; }
};
inline void box_reference(size_t position, const lamella_value* arguments, lamella_value* result) {
  *result = IValue::from_borrowed(arguments[position]).unsafe_release();
}
inline void drop_returns(const lamella_value* returns, size_t count) {
  for (size_t i = 0; i < count; ++i) IValue::adopt(returns[i]);
}
// The argument at a position.
template <size_t I, class First, class... Rest>
auto& nth(First& first, [[maybe_unused]] Rest&... rest) {
  if constexpr (I == 0) {
    return first;
  } else {
    return nth<I - 1>(rest...);
  }
}
// A reference to an argument.
template <class R>
struct Result<R&> {
  using Forms = NoForms;
  static constexpr size_t count = 1;
  static constexpr const char* codes[] = {"T", nullptr};
  static void store(R&, Forms*) {}
  template <class Refs, class... A>
  static R& load(Forms&, A&... arguments) {
    return const_cast<R&>(nth<Refs::position(0)>(arguments...));
  }
  template <class Refs>
  static void box(Forms&, const lamella_value* arguments, lamella_value* returns) {
    box_reference(Refs::position(0), arguments, returns);
  }
  static bool unbox(const lamella_value* returns, Forms*) {
    drop_returns(returns, 1);
    return true;
  }
};
template <class... R>
struct Result<std::tuple<R...>, std::enable_if_t<(!std::is_reference_v<R> && ...)>> {
  using Forms = ReturnForms<R...>;
  static constexpr size_t count = sizeof...(R);
  static constexpr const char* codes[] = {Return<R>::code()..., nullptr};
  template <size_t I, class F, class Visit>
  static void each(F& forms, Visit&& visit) {
    if constexpr (I < sizeof...(R)) {
      visit.template operator()<I>(forms.first);
      each<I + 1>(forms.rest, visit);
    }
  }
  template <size_t I>
  using Element = std::tuple_element_t<I, std::tuple<R...>>;
  static void store(std::tuple<R...>&& values, Forms* forms) {
    each<0>(*forms, [&]<size_t I>(auto& form) {
      Return<Element<I>>::store(std::move(std::get<I>(values)), &form);
    });
  }
  template <class Refs, class... A>
  static std::tuple<R...> load(Forms& forms, A&...) {
    std::tuple<R...> values;
    each<0>(forms,
            [&]<size_t I>(auto& form) { std::get<I>(values) = Return<Element<I>>::load(form); });
    return values;
  }
  template <class Refs>
  static void box(Forms& forms, const lamella_value*, lamella_value* returns) {
    each<0>(forms, [&]<size_t I>(auto& form) { returns[I] = Return<Element<I>>::box(form); });
  }
  static bool unbox(const lamella_value* returns, Forms* forms) {
    bool fits = true;
    each<0>(*forms,
            [&]<size_t I>(auto& form) { fits &= Return<Element<I>>::unbox(returns[I], &form); });
    return fits;
  }
};
template <class... R>
struct Result<std::tuple<R...>,
              std::enable_if_t<(sizeof...(R) > 0) && (std::is_reference_v<R> && ...)>> {
  using Forms = NoForms;
  static constexpr size_t count = sizeof...(R);
  static constexpr const char* codes[] = {(static_cast<void>(sizeof(R)), "T")..., nullptr};
  static void store(const std::tuple<R...>&, Forms*) {}
  template <class Refs, class... A>
  static std::tuple<R...> load(Forms&, A&... arguments) {
    return pick<Refs>(std::make_index_sequence<count>(), arguments...);
  }
  template <class Refs, size_t... I, class... A>
  static std::tuple<R...> pick(std::index_sequence<I...>, A&... arguments) {
    return std::tuple<R...>(const_cast<R>(nth<Refs::position(I)>(arguments...))...);
  }
  template <class Refs>
  static void box(Forms&, const lamella_value* arguments, lamella_value* returns) {
    for (size_t i = 0; i < count; ++i) box_reference(Refs::position(i), arguments, returns + i);
  }
  static bool unbox(const lamella_value* returns, Forms*) {
    drop_returns(returns, count);
    return true;
  }
};

// ---- Errors ------------------------------------------------------------------------------------

// A boxed argument of the wrong kind: names the operator and the argument.
[[gnu::cold, gnu::noinline]] inline lamella_status fail_argument(const lamella_operator* op,
                                                                 uint32_t index, uint8_t tag) {
  lamella_argument_info info;
  if (lamella_operator_argument(op, 0, index, &info) != LAMELLA_OK) return LAMELLA_ERROR;
  char text[1024];
  __builtin_snprintf(text, sizeof(text), "%s: expected '%s' to be a %s, got %s", op->name,
                     info.name, info.type, detail::tag_name(tag));
  return detail::fail(LAMELLA_TYPE_ERROR, text);
}
[[gnu::cold, gnu::noinline]] inline lamella_status fail_return(const lamella_operator* op) {
  char text[1024];
  __builtin_snprintf(text, sizeof(text), "%s: its boxed kernel left a return of the wrong kind",
                     op->name);
  return detail::fail(LAMELLA_ERROR, text);
}

// ---- Calls -------------------------------------------------------------------------------------

template <class Signature>
struct Call;
template <class R, class... A>
struct Call<R(A...)> {
  using Res = Result<R>;
  using Forms = typename Res::Forms;
  using Refs = References<A...>;
  template <class P>
  using FormOf = typename ParamOf<P>::Form;
  using Typed = lamella_status (*)(const lamella_kernel*, uint64_t, FormOf<A>..., Forms*);

  // See Note [Typed convention].
  static const char* signature() { return kSignature.data; }
  // Whether a parameter or return has the code V, which is shared by many types.
  static constexpr bool travels_whole() {
    for (char code : kSignature.data) {
      if (code == 'V') return true;
    }
    return false;
  }

  // Calls the kernel that serves `keys`. Throws the kernel's error.
  [[gnu::always_inline]] static inline R invoke(const lamella_operator* op, uint64_t keys,
                                                std::remove_reference_t<A>&... arguments) {
    lamella_status status;
    Forms forms;
    uint32_t before = enter_call();
    const lamella_kernel* kernel = kernel_of(op, keys);
    if (kernel->typed != nullptr) [[likely]] {
      status = reinterpret_cast<Typed>(kernel->typed)(kernel, keys, ParamOf<A>::pack(arguments)...,
                                                      &forms);
    } else {
      status = invoke_boxed(kernel, op, keys, ParamOf<A>::pack(arguments)..., &forms);
    }
    leave_call(before);
    if (status != LAMELLA_OK) [[unlikely]]
      lamella::detail::throw_status(status);
    return Res::template load<Refs>(forms, arguments...);
  }

  // A typed call of a kernel that has only a boxed function.
  [[gnu::noinline]] static lamella_status invoke_boxed(const lamella_kernel* kernel,
                                                       const lamella_operator* op, uint64_t keys,
                                                       FormOf<A>... forms, Forms* result) {
    const lamella_value arguments[sizeof...(A) != 0 ? sizeof...(A) : 1] = {
        ParamOf<A>::box(forms)...};
    lamella_value returns[Res::count + 1];
    lamella_status status = kernel->boxed(kernel, op, keys, arguments, returns);
    if (status != LAMELLA_OK) return status;
    if (!Res::unbox(returns, result)) return fail_return(op);
    return LAMELLA_OK;
  }

  // The boxed entry of a typed kernel.
  static lamella_status boxed(const lamella_kernel* kernel, const lamella_operator* op,
                              uint64_t keys, const lamella_value* arguments,
                              lamella_value* returns) {
    return boxed_with(kernel, op, keys, arguments, returns, std::index_sequence_for<A...>(),
                      FormOf<A>()...);
  }

 private:
  // Returns the length of the signature, and writes it to `out` unless that is null.
  static constexpr size_t write_signature(char* out) {
    size_t size = 0;
    auto put = [&](const char* code) {
      for (; *code != 0; ++code, ++size) {
        if (out != nullptr) out[size] = *code;
      }
    };
    (put(ParamOf<A>::code()), ...);
    put(">");
    for (const char* const* code = Res::codes; *code != nullptr; ++code) put(*code);
    return size;
  }
  struct Text {
    char data[write_signature(nullptr) + 1];
  };
  static constexpr Text make_signature() {
    Text text{};
    write_signature(text.data);
    return text;
  }
  LAMELLA_HIDDEN static constexpr Text kSignature = make_signature();

  template <size_t... I>
  static lamella_status boxed_with(const lamella_kernel* kernel, const lamella_operator* op,
                                   uint64_t keys, [[maybe_unused]] const lamella_value* arguments,
                                   lamella_value* returns, std::index_sequence<I...>,
                                   FormOf<A>... forms) {
    int bad = -1;
    ((ParamOf<A>::unbox(arguments[I], &forms) || bad >= 0 ? void()
                                                          : void(bad = static_cast<int>(I))),
     ...);
    if (bad >= 0) [[unlikely]] {
      return fail_argument(op, static_cast<uint32_t>(bad), arguments[bad].tag);
    }
    Forms result;
    lamella_status status = reinterpret_cast<Typed>(kernel->typed)(kernel, keys, forms..., &result);
    if (status == LAMELLA_OK) [[likely]]
      Res::template box<Refs>(result, arguments, returns);
    return status;
  }
};

// ---- Kernels -----------------------------------------------------------------------------------

// F::invoke(context, key_set, arguments...) as a typed kernel.
template <class F, class Signature>
struct TypedKernel;
template <class F, class R, class... A>
struct TypedKernel<F, R(A...)> {
  using C = Call<R(A...)>;
  static lamella_status call(const lamella_kernel* kernel, uint64_t keys,
                             typename C::template FormOf<A>... forms,
                             typename C::Forms* result) noexcept {
    return lamella::detail::guarded(
        [&] { run(kernel->context, keys, result, HolderOf<A>(forms)...); });
  }

 private:
  [[gnu::always_inline]] static inline void run(void* context, uint64_t keys,
                                                [[maybe_unused]] typename C::Forms* result,
                                                HolderOf<A>&&... holders) {
    if constexpr (std::is_void_v<R>) {
      F::invoke(context, keys, pass<A>(holders)...);
    } else {
      C::Res::store(static_cast<R>(F::invoke(context, keys, pass<A>(holders)...)), result);
    }
  }
};

}  // namespace lamella::abi
