// How each C++ parameter and return type crosses the ABI: its plain C form, its code in signature
// strings, and its boxed form.
//
// Note [Typed convention]
//   | C++                                   | code | C form                                     |
//   | Tensor, const Tensor&, Tensor&        | T    | lamella_tensor* (borrowed)                 |
//   | optional<Tensor>                      | ?T   | lamella_tensor*, NULL for none             |
//   | TensorList, vector<Tensor>            | L    | {lamella_tensor* const*, size}             |
//   | int64_t, bool, double                 | i b d| int64_t, int64_t, double                   |
//   | ScalarType, Layout, MemoryFormat      | y l m| int64_t                                    |
//   | Device                                | v    | int64_t: type | index << 8                 |
//   | optional<int64_t>, optional<double>   | ?i ?d| {value, int64_t has}                       |
//   | optional of b y l m v                 | ?b   | int64_t, INT64_MIN for none                |
//   | Scalar, optional<Scalar>              | S ?S | lamella_scalar by value, tag 0 for none    |
//   | string_view, string                   | s    | {const char*, size}                        |
//   | IntArrayRef, ArrayRef<double>, bools  | I D B| {pointer, size}                            |
//   | optional of the spans above           | ?I   | the same, size ~0 for none                 |
//   | Generator, optional<Generator>        | G ?G | lamella_object*                            |
//   | anything else                         | V    | const lamella_value*                       |
//   A signature is the codes of the parameters, '>', the codes of the returns. Returns are written
//   through one pointer to their C forms in order: Tensor as an owned lamella_tensor*, numbers as
//   above, Scalar as lamella_scalar, everything else as an owned lamella_value. A returned
//   reference (in-place and out variants) is not transported: it is the argument itself.
#pragma once
#include "lamella/core/ivalue.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella::abi {

template <class T>
struct Span {
  const T* data;
  size_t size;
  bool none() const { return size == ~size_t{0}; }
};
template <class T>
struct Maybe {
  T value;
  int64_t has;
};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

template <class T>
inline constexpr bool is_tensor = __is_base_of(TensorBase, T);

// A Tensor object over a borrowed pointer: never released here.
template <class T>
union Borrowed {
  explicit Borrowed(lamella_tensor* tensor) : pointer(tensor) {}
  ~Borrowed() {}
  lamella_tensor* pointer;
  T tensor;
};

// ---- Boxed form of each C form ---------------------------------------------------------------

inline lamella_value box_span(uint8_t tag, const void* data, size_t size) {
  lamella_value v{{0}, static_cast<uint32_t>(size), tag, 0, 0};
  v.as.pointer = const_cast<void*>(data);
  if (size == ~size_t{0}) v = lamella_value{{0}, 0, LAMELLA_NONE, 0, 0};
  return v;
}
inline lamella_value box_int(uint8_t tag, int64_t number) {
  lamella_value v{{0}, 0, tag, 0, 0};
  v.as.i = number;
  return v;
}
inline lamella_value box_double(double number) {
  lamella_value v{{0}, 0, LAMELLA_DOUBLE, 0, 0};
  v.as.d = number;
  return v;
}
inline lamella_value box_none() { return {{0}, 0, LAMELLA_NONE, 0, 0}; }
inline lamella_value box_tensor(lamella_tensor* tensor) {
  lamella_value v{{0}, 0, LAMELLA_TENSOR, 0, 0};
  v.as.tensor = tensor;
  return v;
}
// The complex payload stays in *number.
inline lamella_value box_scalar(const lamella_scalar& number) {
  switch (number.tag) {
    case LAMELLA_NONE:
      return box_none();
    case LAMELLA_DOUBLE:
      return box_double(number.as.d);
    case LAMELLA_COMPLEX:
      return box_span(LAMELLA_COMPLEX, number.as.z, 2);
    default:
      return box_int(static_cast<uint8_t>(number.tag), number.as.i);
  }
}
inline bool unbox_scalar(const lamella_value& v, lamella_scalar* out) {
  out->tag = v.tag;
  out->as.i = v.as.i;
  if (v.tag == LAMELLA_COMPLEX) {
    out->as.z[0] = static_cast<const double*>(v.as.pointer)[0];
    out->as.z[1] = static_cast<const double*>(v.as.pointer)[1];
    return true;
  }
  return v.tag == LAMELLA_INT || v.tag == LAMELLA_DOUBLE || v.tag == LAMELLA_BOOL;
}

// ---- Parameters --------------------------------------------------------------------------------
// Param<T> for a decayed T has: Form (the C form), code(), pack(value) -> convertible to Form,
// struct Holder{Form -> get()}, box(Form) and unbox(value, Form*) -> whether the tag fits.

template <class T>
struct Param;

template <class T>
  requires is_tensor<T>
struct Param<T> {
  using Form = lamella_tensor*;
  static constexpr const char* code() { return "T"; }
  static Form pack(const T& value) { return value.impl(); }
  struct Holder {
    explicit Holder(Form form) : held(form) {}
    T& get() { return held.tensor; }
    Borrowed<T> held;
  };
  static lamella_value box(Form form) { return box_tensor(form); }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = v.tag == LAMELLA_TENSOR ? v.as.tensor : nullptr;
    return v.tag == LAMELLA_TENSOR || v.tag == LAMELLA_NONE;
  }
};

template <class T>
  requires is_tensor<T>
struct Param<std::optional<T>> {
  using Form = lamella_tensor*;
  static constexpr const char* code() { return "?T"; }
  static Form pack(const std::optional<T>& value) { return value ? value->impl() : nullptr; }
  struct Holder {
    explicit Holder(Form form) {
      if (form != nullptr) held.emplace(T(TensorBase::adopt(form)));
    }
    ~Holder() {
      if (held) held->unsafe_release();
    }
    std::optional<T>& get() { return held; }
    std::optional<T> held;
  };
  static lamella_value box(Form form) { return form ? box_tensor(form) : box_none(); }
  static bool unbox(const lamella_value& v, Form* form) { return Param<T>::unbox(v, form); }
};

template <class T>
  requires is_tensor<T>
struct Param<ArrayRef<T>> {
  using Form = Span<lamella_tensor*>;
  static constexpr const char* code() { return "L"; }
  static Form pack(ArrayRef<T> value) {
    return {reinterpret_cast<lamella_tensor* const*>(value.data()), value.size()};
  }
  struct Holder {
    explicit Holder(Form form) : held(reinterpret_cast<const T*>(form.data), form.size) {}
    ArrayRef<T>& get() { return held; }
    ArrayRef<T> held;
  };
  static lamella_value box(Form form) {
    return box_span(LAMELLA_TENSOR_LIST, form.data, form.size);
  }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = {static_cast<lamella_tensor* const*>(v.as.pointer), v.size};
    return v.tag == LAMELLA_TENSOR_LIST;
  }
};
template <class T>
  requires is_tensor<T>
struct Param<std::vector<T>> : Param<ArrayRef<T>> {
  static Span<lamella_tensor*> pack(const std::vector<T>& value) {
    return Param<ArrayRef<T>>::pack(value);
  }
  struct Holder {
    explicit Holder(Span<lamella_tensor*> form)
        : held(typename Param<ArrayRef<T>>::Holder(form).held.vec()) {}
    std::vector<T>& get() { return held; }
    std::vector<T> held;
  };
};

// ---- Plain types -------------------------------------------------------------------------------
// Plain<T> has: Form, code(), to(T) -> Form, from(Form) -> T, box(Form), unbox(value, Form*) ->
// whether the tag fits; and for optional<T>, Optional (the form), none(), is_none(), some(Form) ->
// Optional and get(Optional) -> Form. All of them are partial specialisations, so that a file pays
// for those alone that its operators use.
template <class T>
struct Plain;

// The form of an optional whose plain form has an unused value, kNone, that stands for None.
template <class F, F kNone>
struct WithSpare {
  using Optional = F;
  static F none() { return kNone; }
  static bool is_none(F form) { return form == kNone; }
  static F some(F form) { return form; }
  static F get(F form) { return form; }
};
// The form of an optional whose plain form uses all its values: a flag says whether it is given.
template <class F>
struct WithFlag {
  using Optional = Maybe<F>;
  // Writes value and flag at once, in std::optional's order: a kernel gets the optional by value,
  // and a copy of bytes that were stored one by one waits until they have left the store buffer.
  static void copy_into(std::optional<F>& held, const Optional& form) {
    const Optional plain = {form.value, form.has != 0};
    __builtin_memcpy(static_cast<void*>(&held), &plain, sizeof(held));
  }
  static Optional none() { return {0, 0}; }
  static bool is_none(Optional form) { return form.has == 0; }
  static Optional some(F form) { return {form, 1}; }
  static F get(Optional form) { return form.value; }
};

// Numbers and enumerations that travel as one word.
template <class T>
inline constexpr const char* word_code = nullptr;
template <>
inline constexpr const char* word_code<int64_t> = "?i";
template <>
inline constexpr const char* word_code<bool> = "?b";
template <>
inline constexpr const char* word_code<ScalarType> = "?y";
template <>
inline constexpr const char* word_code<Layout> = "?l";
template <>
inline constexpr const char* word_code<MemoryFormat> = "?m";
template <>
inline constexpr const char* word_code<Device> = "?v";
template <class T>
inline constexpr bool is_word = word_code<T> != nullptr;

inline bool unbox_word(const lamella_value& v, uint8_t tag, int64_t* word) {
  *word = v.as.i;
  return v.tag == tag || (tag == LAMELLA_INT && v.tag == LAMELLA_BOOL);
}
template <class T>
struct WordWithSpare : WithSpare<int64_t, INT64_MIN> {
  // As above. `word` has the bytes of a T, and of a bool any value.
  static void copy_into(std::optional<T>& held, int64_t word) {
    constexpr int bits = 8 * static_cast<int>(sizeof(T));
    static_assert(bits <= 16 && sizeof(held) == sizeof(T) + 1);
    if constexpr (std::is_same_v<T, bool>) word = word == INT64_MIN ? word : word != 0;
    const uint32_t whole = (static_cast<uint32_t>(word) & ((1u << bits) - 1)) |
                           static_cast<uint32_t>(word != INT64_MIN) << bits;
    __builtin_memcpy(static_cast<void*>(&held), &whole, sizeof(held));
  }
};
// An int uses its whole range; the other one-word types leave one value unused, for None.
template <class T>
  requires is_word<T>
struct Plain<T> : std::conditional_t<std::is_same_v<T, int64_t>, WithFlag<T>, WordWithSpare<T>> {
  using Form = int64_t;
  static constexpr uint8_t tag = std::is_same_v<T, bool>     ? LAMELLA_BOOL
                                 : std::is_same_v<T, Device> ? LAMELLA_DEVICE
                                                             : LAMELLA_INT;
  static constexpr const char* optional_code() { return word_code<T>; }
  static int64_t to(T value) {
    if constexpr (std::is_same_v<T, Device>) {
      return IValue::pack_device(value);
    } else {
      return static_cast<int64_t>(value);
    }
  }
  static T from(int64_t word) {
    if constexpr (std::is_same_v<T, Device>) {
      return IValue::unpack_device(word);
    } else {
      return static_cast<T>(word);
    }
  }
  static lamella_value box(int64_t word) { return box_int(tag, word); }
  static bool unbox(const lamella_value& v, int64_t* word) { return unbox_word(v, tag, word); }
};

template <class T>
  requires std::is_same_v<T, double>
struct Plain<T> : WithFlag<T> {
  using Form = double;
  static constexpr const char* optional_code() { return "?d"; }
  static double to(double value) { return value; }
  static double from(double value) { return value; }
  static lamella_value box(double number) { return box_double(number); }
  static bool unbox(const lamella_value& v, double* number) {
    *number = v.tag == LAMELLA_DOUBLE ? v.as.d : static_cast<double>(v.as.i);
    return v.tag == LAMELLA_DOUBLE || v.tag == LAMELLA_INT;
  }
};

inline lamella_scalar to_c(const Scalar& value) {
  static_assert(sizeof(Scalar) == sizeof(lamella_scalar));
  lamella_scalar c;
  __builtin_memcpy(&c, &value, sizeof(c));
  return c;
}
inline Scalar from_c(const lamella_scalar& c) {
  Scalar value;
  __builtin_memcpy(static_cast<void*>(&value), &c, sizeof(c));
  return value;
}
template <class T>
  requires std::is_same_v<T, Scalar>
struct Plain<T> {
  using Form = lamella_scalar;
  using Optional = lamella_scalar;
  static constexpr const char* optional_code() { return "?S"; }
  static Form to(const T& value) { return to_c(value); }
  static T from(const Form& form) { return from_c(form); }
  static lamella_value box(const Form& form) { return box_scalar(form); }
  static bool unbox(const lamella_value& v, Form* form) { return unbox_scalar(v, form); }
  static Form none() { return {{0}, LAMELLA_NONE}; }
  static bool is_none(const Form& form) { return form.tag == LAMELLA_NONE; }
  static const Form& some(const Form& form) { return form; }
  static const Form& get(const Form& form) { return form; }
};

// Spans: View is what kernels are given, T the element, TAG the boxed list.
template <class View, class T, uint8_t TAG>
struct PlainSpan {
  using Form = Span<T>;
  using Optional = Form;
  static Form to(const View& value) { return {value.data(), value.size()}; }
  static View from(Form form) { return View(form.data, form.size); }
  static lamella_value box(Form form) { return box_span(TAG, form.data, form.size); }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = {static_cast<const T*>(v.as.pointer), v.size};
    return v.tag == TAG;
  }
  static Form none() { return {nullptr, ~size_t{0}}; }
  static bool is_none(Form form) { return form.none(); }
  static Form some(Form form) { return form; }
  static Form get(Form form) { return form; }
};
template <class T>
  requires std::is_same_v<T, int64_t>
struct Plain<ArrayRef<T>> : PlainSpan<ArrayRef<T>, T, LAMELLA_INT_LIST> {
  static constexpr const char* optional_code() { return "?I"; }
};
template <class T>
  requires std::is_same_v<T, double>
struct Plain<ArrayRef<T>> : PlainSpan<ArrayRef<T>, T, LAMELLA_DOUBLE_LIST> {
  static constexpr const char* optional_code() { return "?D"; }
};
template <class T>
  requires std::is_same_v<T, bool>
struct Plain<ArrayRef<T>> : PlainSpan<ArrayRef<T>, T, LAMELLA_BOOL_LIST> {
  static constexpr const char* optional_code() { return "?B"; }
};
template <class T>
  requires std::is_same_v<T, std::string_view>
struct Plain<T> : PlainSpan<T, char, LAMELLA_STRING> {
  static constexpr const char* optional_code() { return "?s"; }
};

template <class T>
  requires std::is_same_v<T, Generator>
struct Plain<T> : WithSpare<lamella_object*, nullptr> {
  using Form = lamella_object*;
  static constexpr const char* optional_code() { return "?G"; }
  static Form to(const T& value) { return value.get(); }
  static T from(Form form) { return T::borrow(form); }
  static lamella_value box(Form form) {
    return form != nullptr ? box_span(LAMELLA_GENERATOR, form, 0) : box_none();
  }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = v.tag == LAMELLA_GENERATOR ? static_cast<lamella_object*>(v.as.pointer) : nullptr;
    return v.tag == LAMELLA_GENERATOR || v.tag == LAMELLA_NONE;
  }
};

template <class T>
  requires requires { typename Plain<T>::Form; }
struct Param<T> {
  using Form = typename Plain<T>::Form;
  static constexpr const char* code() { return Plain<T>::optional_code() + 1; }
  static Form pack(const T& value) { return Plain<T>::to(value); }
  struct Holder {
    explicit Holder(const Form& form) : held(Plain<T>::from(form)) {}
    T& get() { return held; }
    T held;
  };
  static lamella_value box(const Form& form) { return Plain<T>::box(form); }
  static bool unbox(const lamella_value& v, Form* form) { return Plain<T>::unbox(v, form); }
};
template <class Optional, class T>
struct OptionalParam {
  using P = Plain<T>;
  using Form = typename P::Optional;
  static constexpr const char* code() { return P::optional_code(); }
  static Form pack(const Optional& value) {
    return value.has_value() ? P::some(P::to(*value)) : P::none();
  }
  struct Holder {
    explicit Holder(const Form& form) {
      if constexpr (requires { P::copy_into(held, form); }) {
        P::copy_into(held, form);
      } else if (!P::is_none(form)) {
        held = P::from(P::get(form));
      }
    }
    Optional& get() { return held; }
    Optional held;
  };
  static lamella_value box(const Form& form) {
    return P::is_none(form) ? box_none() : P::box(P::get(form));
  }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = P::none();
    if (v.tag == LAMELLA_NONE) return true;
    typename P::Form plain;
    bool fits = P::unbox(v, &plain);
    *form = P::some(plain);
    return fits;
  }
};
template <class T>
  requires requires { typename Plain<T>::Form; }
struct Param<std::optional<T>> : OptionalParam<std::optional<T>, T> {};
template <class T>
struct Param<OptionalArrayRef<T>> : OptionalParam<OptionalArrayRef<T>, ArrayRef<T>> {};

// Owning types such as std::vector: one is constructed for the kernel from the span.
template <class Owner, class View>
struct OwnerParam : Param<View> {
  struct Holder {
    explicit Holder(typename Param<View>::Form form) : held(form.data, form.data + form.size) {}
    Owner& get() { return held; }
    Owner held;
  };
};
template <class Traits, class A>
struct Param<std::basic_string<char, Traits, A>>
    : OwnerParam<std::basic_string<char, Traits, A>, std::string_view> {};
template <class T>
  requires(std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
struct Param<std::vector<T>> : OwnerParam<std::vector<T>, ArrayRef<T>> {};
template <class T, size_t N>
  requires std::is_same_v<T, bool>
struct Param<std::array<T, N>> : Param<ArrayRef<T>> {
  static Span<bool> pack(const std::array<T, N>& value) { return {value.data(), N}; }
  struct Holder {
    explicit Holder(Span<bool> form) {
      LAMELLA_CHECK(form.size == N, "expected a list of ", N, " bools, got ", form.size);
      for (size_t i = 0; i < N; ++i) held[i] = form.data[i];
    }
    std::array<T, N>& get() { return held; }
    std::array<T, N> held;
  };
};

// Conversions of the types that travel as a whole value. FromValue<T>::get(IValue).
template <class T>
struct FromValue {
  static T get(const IValue& v) {
    if constexpr (std::is_same_v<T, std::string>) {
      return v.toStringRef();
    } else if constexpr (std::is_same_v<T, Scalar>) {
      return v.toScalar();
    } else {
      static_assert(std::is_same_v<T, IValue>);
      return v;
    }
  }
};
template <class T>
struct FromValue<std::optional<T>> {
  static std::optional<T> get(const IValue& v) {
    if (v.isNone()) return std::nullopt;
    return FromValue<T>::get(v);
  }
};
template <class T>
struct FromValue<std::vector<T>> {
  static std::vector<T> get(const IValue& v) {
    std::vector<T> result;
    for (const IValue& item : v.elements()) result.push_back(FromValue<T>::get(item));
    return result;
  }
};
// Types whose values are made by a specialization of ToValue only. They need whole_values.h.
template <class T>
inline constexpr bool needs_whole_values = false;
template <class... T>
inline constexpr bool needs_whole_values<std::tuple<T...>> = true;
template <class T>
inline constexpr bool needs_whole_values<List<T>> = true;
template <class K, class V>
inline constexpr bool needs_whole_values<Dict<K, V>> = true;
template <class T>
struct ToValue {
  static_assert(!needs_whole_values<T>, "include lamella/dispatch/whole_values.h");
  static IValue get(const T& value) { return IValue(value); }
};
template <class T>
struct ToValue<std::vector<T>> {
  static IValue get(const std::vector<T>& list) {
    if constexpr (detail::has_list_tag<T>) {
      return IValue(list);
    } else {
      std::vector<typename detail::Later<T, IValue>::type> items;
      for (const T& item : list) items.push_back(ToValue<T>::get(item));
      return IValue::list(ArrayRef<IValue>(items));
    }
  }
};

struct PackedValue {
  IValue held;
  operator const lamella_value*() const { return &held.value(); }
};
template <class T>
struct ValueParam {
  using Form = const lamella_value*;
  static constexpr const char* code() { return "V"; }
  static PackedValue pack(const T& value) { return {ToValue<T>::get(value)}; }
  struct Holder {
    explicit Holder(Form form) : held(FromValue<T>::get(IValue::from_borrowed(*form))) {}
    T& get() { return held; }
    T held;
  };
  static lamella_value box(Form form) { return *form; }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = &v;
    return true;
  }
};
template <class T>
  requires std::is_same_v<T, IValue>
struct Param<T> : ValueParam<T> {};
template <class T>
  requires(std::is_same_v<T, Scalar> || std::is_same_v<T, std::string>)
struct Param<std::vector<T>> : ValueParam<std::vector<T>> {};
// A view of a list that is made of the value.
template <class T>
struct ViewParam : ValueParam<std::vector<T>> {
  static PackedValue pack(ArrayRef<T> value) {
    return ValueParam<std::vector<T>>::pack(value.vec());
  }
  struct Holder {
    explicit Holder(const lamella_value* form)
        : items(FromValue<std::vector<T>>::get(IValue::from_borrowed(*form))), held(items) {}
    ArrayRef<T>& get() { return held; }
    std::vector<T> items;
    ArrayRef<T> held;
  };
};
template <class T>
  requires std::is_same_v<T, Scalar>
struct Param<ArrayRef<T>> : ViewParam<T> {};

// Note [What a kernel may do with its arguments]
//   Tensors arrive borrowed. What a kernel takes by value is its own: it gets a reference more. So
//   does what it takes by a reference through which it could give that reference away: Tensor&&,
//   and optional<Tensor>& that is not const. A Tensor& may be assigned to as well; in Lamella's own
//   kernels it never is, and they do not pay for it.
template <class P>
using Decayed = std::remove_cv_t<std::remove_reference_t<P>>;
template <class P>
using ParamOf = Param<Decayed<P>>;
template <class T>
inline constexpr bool is_optional_tensor = false;
template <class T>
inline constexpr bool is_optional_tensor<std::optional<T>> = is_tensor<T>;
#ifdef LAMELLA_BUILDING_LIBRARY
inline constexpr bool kMayAssignTensors = false;
#else
inline constexpr bool kMayAssignTensors = true;
#endif
template <class P, class T = Decayed<P>>
inline constexpr bool needs_own_tensor =
    std::is_rvalue_reference_v<P>
        ? is_tensor<T> || is_optional_tensor<T>
        : std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>> &&
              ((is_tensor<T> && kMayAssignTensors) || is_optional_tensor<T>);
template <class T>
struct OwnedHolder {
  explicit OwnedHolder(typename Param<T>::Form form)
      : held(typename Param<T>::Holder(form).get()) {}
  T& get() { return held; }
  T held;
};
template <class P>
using HolderOf =
    std::conditional_t<needs_own_tensor<P>, OwnedHolder<Decayed<P>>, typename ParamOf<P>::Holder>;
template <class P, class Holder>
inline P pass(Holder& holder) {
  constexpr bool borrowed = is_tensor<Decayed<P>> || is_optional_tensor<Decayed<P>>;
  if constexpr (std::is_lvalue_reference_v<P> || (borrowed && !std::is_rvalue_reference_v<P>)) {
    return holder.get();  // a tensor taken by value is copied, because the argument is borrowed
  } else {
    return std::move(holder.get());
  }
}

}  // namespace lamella::abi
