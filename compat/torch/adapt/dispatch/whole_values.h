// Parameters and returns of C++ types that have no C form of their own: lists of optionals,
// strings, lists and tuples, List, Dict. They travel as whole values; see Note [Typed convention]
// in abi_types.h. Included where kernels have such types, so that other files do not pay for it.
#pragma once
#include "lamella/core/dict.h"
#include "lamella/core/list.h"
#include "lamella/dispatch/signature.h"

template <class T, size_t N>
inline constexpr bool lamella::detail::converts_to_value<std::array<T, N>> = true;

namespace lamella::abi {

// ---- Conversions of values ---------------------------------------------------------------------

template <class T>
  requires is_tensor<T>
struct FromValue<T> {
  static T get(const IValue& v) { return v.toTensor<T>(); }
};
template <class T>
  requires(is_word<T> || std::is_same_v<T, double>)
struct FromValue<T> {
  static T get(const IValue& v) {
    if constexpr (std::is_same_v<T, double>) {
      return v.toDouble();
    } else if constexpr (std::is_same_v<T, bool>) {
      return v.toBool();
    } else if constexpr (std::is_same_v<T, Device>) {
      return v.toDevice();
    } else {
      return static_cast<T>(v.toInt());
    }
  }
};
template <class T>
  requires std::is_same_v<T, complex<double>>
struct FromValue<T> {
  static T get(const IValue& v) { return v.toComplexDouble(); }
};
// A list of any kind, entry by entry.
template <class L, class T>
struct ListFromValue {
  static L get(const IValue& v) {
    L result;
    if (v.value().tag == LAMELLA_TUPLE) {
      for (const IValue& entry : v.elements()) result.push_back(FromValue<T>::get(entry));
    } else {
      const List<IValue> entries = v.toList();
      for (const IValue& entry : entries) result.push_back(FromValue<T>::get(entry));
    }
    return result;
  }
};
template <class T>
  requires(is_tensor<T> || is_word<T> || std::is_same_v<T, double>)
struct FromValue<std::vector<T>> : ListFromValue<std::vector<T>, T> {};
template <class T, size_t N>
struct FromValue<std::array<T, N>> {
  static std::array<T, N> get(const IValue& v) {
    const List<IValue> entries = v.toList();
    LAMELLA_CHECK(entries.size() == N, "expected a list of ", N, " values, got ", entries.size());
    std::array<T, N> result;
    for (size_t i = 0; i < N; ++i) result[i] = FromValue<T>::get(entries.get(i));
    return result;
  }
};
template <class T>
struct FromValue<List<T>> : ListFromValue<List<T>, T> {};
template <class K, class V>
struct FromValue<Dict<K, V>> {
  static Dict<K, V> get(const IValue& v) {
    ArrayRef<IValue> entries = v.elements();
    Dict<K, V> result;
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      result.insert(FromValue<K>::get(entries[i]), FromValue<V>::get(entries[i + 1]));
    }
    return result;
  }
};
template <class... T>
struct FromValue<std::tuple<T...>> {
  static std::tuple<T...> get(const IValue& v) {
    LAMELLA_CHECK(v.elements().size() == sizeof...(T), "expected a tuple of ", sizeof...(T),
                  " values, got ", v.elements().size());
    return get(v.elements(), std::index_sequence_for<T...>());
  }
  template <size_t... I>
  static std::tuple<T...> get(ArrayRef<IValue> items, std::index_sequence<I...>) {
    return std::tuple<T...>(FromValue<T>::get(items[I])...);
  }
};

template <class T>
  requires std::is_same_v<T, bool>
struct ToValue<std::vector<T>> {
  static IValue get(const std::vector<T>& list) {
    lamella_value value;
    detail::check(lamella_value_allocate(LAMELLA_BOOL_LIST, list.size(), &value));
    for (size_t i = 0; i < list.size(); ++i) {
      static_cast<uint8_t*>(value.as.pointer)[i] = list[i] ? 1 : 0;
    }
    return IValue::adopt(value);
  }
};
template <class T, size_t N>
struct ToValue<std::array<T, N>> {
  static IValue get(const std::array<T, N>& list) {
    return ToValue<std::vector<T>>::get(std::vector<T>(list.begin(), list.end()));
  }
};
template <class T>
struct ToValue<std::optional<T>> {
  static IValue get(const std::optional<T>& value) {
    return value.has_value() ? ToValue<T>::get(*value) : IValue();
  }
};
template <class T>
struct ToValue<List<T>> {
  static IValue get(const List<T>& list) { return ToValue<std::vector<T>>::get(list.vec()); }
};
template <class K, class V>
struct ToValue<Dict<K, V>> {
  static IValue get(const Dict<K, V>& dict) {
    std::vector<IValue> items;
    for (const auto& entry : dict) {
      items.push_back(ToValue<K>::get(entry.key()));
      items.push_back(ToValue<V>::get(entry.value()));
    }
    return IValue::dict(ArrayRef<IValue>(items));
  }
};
template <class... T>
struct ToValue<std::tuple<T...>> {
  static IValue get(const std::tuple<T...>& values) {
    return std::apply(
        [](const T&... value) {
          std::vector<IValue> items{ToValue<T>::get(value)...};
          return IValue::tuple(ArrayRef<IValue>(items));
        },
        values);
  }
};

// ---- Parameters --------------------------------------------------------------------------------

// Lists with a C form: a List is made for the kernel.
template <class T>
  requires requires { typename Param<ArrayRef<T>>::Form; }
struct Param<List<T>> : Param<ArrayRef<T>> {
  static auto pack(const List<T>& value) {
    return Param<ArrayRef<T>>::pack(ArrayRef<T>(value.vec()));
  }
  struct Holder {
    explicit Holder(const typename Param<ArrayRef<T>>::Form& form)
        : held(typename Param<ArrayRef<T>>::Holder(form).get()) {}
    List<T>& get() { return held; }
    List<T> held;
  };
};
template <class T>
  requires(!is_optional_tensor<T> && !requires { typename Param<ArrayRef<T>>::Form; })
struct Param<List<T>> : ValueParam<List<T>> {};
template <class K, class V>
struct Param<Dict<K, V>> : ValueParam<Dict<K, V>> {};
template <class... T>
struct Param<std::tuple<T...>> : ValueParam<std::tuple<T...>> {};
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_dict = false;
template <class K, class V>
inline constexpr bool is_dict<Dict<K, V>> = true;

// A list of optional tensors has the form of a list of tensors, undefined ones for None.
template <class L, class T>
struct OptionalTensorsParam {
  using Form = Span<lamella_tensor*>;
  static constexpr const char* code() { return "L"; }
  struct Packed {
    std::vector<lamella_tensor*> tensors;
    operator Form() const { return {tensors.data(), tensors.size()}; }
  };
  static Packed pack(const L& value) {
    Packed packed;
    for (const std::optional<T>& entry : value) {
      packed.tensors.push_back(entry ? entry->impl() : nullptr);
    }
    return packed;
  }
  struct Holder {
    explicit Holder(Form form) {
      for (size_t i = 0; i < form.size; ++i) {
        held.push_back(form.data[i] == nullptr
                           ? std::optional<T>()
                           : std::optional<T>(T(TensorBase::borrow(form.data[i]))));
      }
    }
    L& get() { return held; }
    L held;
  };
  static lamella_value box(Form form) { return Param<ArrayRef<T>>::box(form); }
  static bool unbox(const lamella_value& v, Form* form) {
    return Param<ArrayRef<T>>::unbox(v, form);
  }
};
template <class T>
  requires is_optional_tensor<T>
struct Param<std::vector<T>> : OptionalTensorsParam<std::vector<T>, typename T::value_type> {};
template <class T>
  requires is_optional_tensor<T>
struct Param<List<T>> : OptionalTensorsParam<List<T>, typename T::value_type> {};
template <class T>
  requires((is_optional<T>::value && !is_optional_tensor<T>) || is_vector<T> || is_dict<T> ||
           is_tuple<T>::value)
struct Param<std::vector<T>> : ValueParam<std::vector<T>> {};

template <class T>
  requires std::is_same_v<T, bool>
struct Param<std::vector<T>> : Param<ArrayRef<bool>> {
  struct Packed {
    std::vector<uint8_t> flags;
    operator Span<bool>() const {
      return {reinterpret_cast<const bool*>(flags.data()), flags.size()};
    }
  };
  static Packed pack(const std::vector<T>& value) {
    return {std::vector<uint8_t>(value.begin(), value.end())};
  }
  struct Holder {
    explicit Holder(Span<bool> form) : held(form.data, form.data + form.size) {}
    std::vector<T>& get() { return held; }
    std::vector<T> held;
  };
};
template <class T>
  requires std::is_same_v<T, std::string>
struct Param<ArrayRef<T>> : ViewParam<T> {};
template <class T, size_t N>
  requires(!std::is_same_v<T, bool> && !std::is_same_v<T, int64_t> && !std::is_same_v<T, double>)
struct Param<std::array<T, N>> : ValueParam<std::array<T, N>> {};
template <class T, size_t N>
  requires(std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
struct Param<std::array<T, N>> : Param<ArrayRef<T>> {
  static Span<T> pack(const std::array<T, N>& value) { return {value.data(), N}; }
  struct Holder {
    explicit Holder(Span<T> form) {
      LAMELLA_CHECK(form.size == N, "expected a list of ", N, " numbers, got ", form.size);
      for (size_t i = 0; i < N; ++i) held[i] = form.data[i];
    }
    std::array<T, N>& get() { return held; }
    std::array<T, N> held;
  };
};

// Owners of optional spans.
template <class Owner, class View>
struct OptionalOwnerParam : Param<std::optional<View>> {
  using Form = typename Param<std::optional<View>>::Form;
  static Form pack(const std::optional<Owner>& value) {
    return Param<std::optional<View>>::pack(value ? std::optional<View>(View(*value))
                                                  : std::nullopt);
  }
  struct Holder {
    explicit Holder(const Form& form) {
      typename Param<std::optional<View>>::Holder view(form);
      if (view.get().has_value()) held.emplace(view.get()->begin(), view.get()->end());
    }
    std::optional<Owner>& get() { return held; }
    std::optional<Owner> held;
  };
};
template <class T>
  requires std::is_same_v<T, std::string>
struct Param<std::optional<T>> : OptionalOwnerParam<T, std::string_view> {};
template <class T>
  requires(std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
struct Param<std::optional<std::vector<T>>> : OptionalOwnerParam<std::vector<T>, ArrayRef<T>> {};
template <class T>
  requires(std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
struct Param<std::optional<List<T>>> : OptionalOwnerParam<List<T>, ArrayRef<T>> {
  static auto pack(const std::optional<List<T>>& value) {
    return Param<std::optional<ArrayRef<T>>>::pack(
        value ? std::optional<ArrayRef<T>>(ArrayRef<T>(value->vec())) : std::nullopt);
  }
};
template <class T>
  requires(is_dict<T> || is_tuple<T>::value)
struct Param<std::optional<T>> : ValueParam<std::optional<T>> {};
// Optional lists of tensors and of what else travels whole.
template <class T>
  requires(is_tensor<T>)
struct Param<std::optional<std::vector<T>>> : ValueParam<std::optional<std::vector<T>>> {};
template <class T>
  requires(is_tensor<T>)
struct Param<std::optional<List<T>>> : ValueParam<std::optional<List<T>>> {};
template <class T>
  requires(is_tensor<T>)
struct Param<std::optional<ArrayRef<T>>> : ValueParam<std::optional<std::vector<T>>> {
  static PackedValue pack(const std::optional<ArrayRef<T>>& value) {
    return {value ? IValue(*value) : IValue()};
  }
  struct Holder {
    explicit Holder(const lamella_value* form)
        : items(FromValue<std::optional<std::vector<T>>>::get(IValue::from_borrowed(*form))) {
      if (items) held.emplace(*items);
    }
    std::optional<ArrayRef<T>>& get() { return held; }
    std::optional<std::vector<T>> items;
    std::optional<ArrayRef<T>> held;
  };
};

// ---- Returns -----------------------------------------------------------------------------------

// Tensor?: an undefined tensor for None.
template <class T>
struct Return<std::optional<T>, std::enable_if_t<is_tensor<T>>> {
  using Form = lamella_tensor*;
  static constexpr const char* code() { return "?T"; }
  static void store(std::optional<T>&& value, Form* form) {
    *form = value ? value->unsafe_release() : nullptr;
  }
  static std::optional<T> load(Form& form) {
    if (form == nullptr) return std::nullopt;
    return T(TensorBase::adopt(form));
  }
  static lamella_value box(Form& form) { return form != nullptr ? box_tensor(form) : box_none(); }
  static bool unbox(const lamella_value& v, Form* form) { return Return<T>::unbox(v, form); }
};
template <class T>
struct Return<List<T>, std::enable_if_t<is_tensor<T>>> {
  using Form = lamella_value;
  static constexpr const char* code() { return "L"; }
  static void store(List<T>&& value, Form* form) { *form = IValue(value.vec()).unsafe_release(); }
  static List<T> load(Form& form) {
    return List<T>(IValue::adopt(form).template toTensorList<T>());
  }
  static lamella_value box(Form& form) { return form; }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = v;
    return v.tag == LAMELLA_TENSOR_LIST;
  }
};

}  // namespace lamella::abi
