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
inline constexpr bool is_tensor = std::is_base_of_v<TensorBase, T>;

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

template <class T, class Enable = void>
struct Param;

template <class T>
struct Param<T, std::enable_if_t<is_tensor<T>>> {
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
struct Param<std::optional<T>, std::enable_if_t<is_tensor<T>>> {
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
struct Param<ArrayRef<T>, std::enable_if_t<is_tensor<T>>> {
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
struct Param<std::vector<T>, std::enable_if_t<is_tensor<T>>> : Param<ArrayRef<T>> {
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

// Numbers and enumerations that travel as one word.
template <class T>
struct Word;
#define LAMELLA_WORD(T, CODE, TAG)                                     \
  template <>                                                          \
  struct Word<T> {                                                     \
    static constexpr const char* code() { return CODE; }               \
    static constexpr const char* optional_code() { return "?" CODE; }  \
    static constexpr uint8_t tag = TAG;                                \
    static int64_t to(T value) { return static_cast<int64_t>(value); } \
    static T from(int64_t word) { return static_cast<T>(word); }       \
  };
LAMELLA_WORD(int64_t, "i", LAMELLA_INT)
LAMELLA_WORD(bool, "b", LAMELLA_BOOL)
LAMELLA_WORD(ScalarType, "y", LAMELLA_INT)
LAMELLA_WORD(Layout, "l", LAMELLA_INT)
LAMELLA_WORD(MemoryFormat, "m", LAMELLA_INT)
#undef LAMELLA_WORD
template <>
struct Word<Device> {
  static constexpr const char* code() { return "v"; }
  static constexpr const char* optional_code() { return "?v"; }
  static constexpr uint8_t tag = LAMELLA_DEVICE;
  static int64_t to(Device value) { return IValue::pack_device(value); }
  static Device from(int64_t word) { return IValue::unpack_device(word); }
};
template <class T>
inline constexpr bool is_word =
    std::is_same_v<T, int64_t> || std::is_same_v<T, bool> || std::is_same_v<T, ScalarType> ||
    std::is_same_v<T, Layout> || std::is_same_v<T, MemoryFormat> || std::is_same_v<T, Device>;

inline bool unbox_word(const lamella_value& v, uint8_t tag, int64_t* word) {
  *word = v.as.i;
  return v.tag == tag || (tag == LAMELLA_INT && v.tag == LAMELLA_BOOL);
}
inline bool unbox_double(const lamella_value& v, double* number) {
  *number = v.tag == LAMELLA_DOUBLE ? v.as.d : static_cast<double>(v.as.i);
  return v.tag == LAMELLA_DOUBLE || v.tag == LAMELLA_INT;
}

template <class T>
struct Param<T, std::enable_if_t<is_word<T>>> {
  using Form = int64_t;
  static constexpr const char* code() { return Word<T>::code(); }
  static Form pack(T value) { return Word<T>::to(value); }
  struct Holder {
    explicit Holder(Form form) : held(Word<T>::from(form)) {}
    T& get() { return held; }
    T held;
  };
  static lamella_value box(Form form) { return box_int(Word<T>::tag, form); }
  static bool unbox(const lamella_value& v, Form* form) {
    return unbox_word(v, Word<T>::tag, form);
  }
};
// The whole range of an optional int is in use; the other words leave one value free for none.
template <>
struct Param<std::optional<int64_t>> {
  using Form = Maybe<int64_t>;
  static constexpr const char* code() { return "?i"; }
  static Form pack(const std::optional<int64_t>& value) {
    return value ? Form{*value, 1} : Form{0, 0};
  }
  struct Holder {
    explicit Holder(Form form) {
      if (form.has) held = form.value;
    }
    std::optional<int64_t>& get() { return held; }
    std::optional<int64_t> held;
  };
  static lamella_value box(Form form) {
    return form.has ? box_int(LAMELLA_INT, form.value) : box_none();
  }
  static bool unbox(const lamella_value& v, Form* form) {
    form->has = v.tag != LAMELLA_NONE;
    form->value = 0;
    return !form->has || unbox_word(v, LAMELLA_INT, &form->value);
  }
};
inline constexpr int64_t kNoWord = INT64_MIN;
template <class T>
struct Param<std::optional<T>, std::enable_if_t<is_word<T> && !std::is_same_v<T, int64_t>>> {
  using Form = int64_t;
  static constexpr const char* code() { return Word<T>::optional_code(); }
  static Form pack(const std::optional<T>& value) { return value ? Word<T>::to(*value) : kNoWord; }
  struct Holder {
    explicit Holder(Form form) {
      if (form != kNoWord) held = Word<T>::from(form);
    }
    std::optional<T>& get() { return held; }
    std::optional<T> held;
  };
  static lamella_value box(Form form) {
    return form != kNoWord ? box_int(Word<T>::tag, form) : box_none();
  }
  static bool unbox(const lamella_value& v, Form* form) {
    if (v.tag != LAMELLA_NONE) return unbox_word(v, Word<T>::tag, form);
    *form = kNoWord;
    return true;
  }
};

template <>
struct Param<double> {
  using Form = double;
  static constexpr const char* code() { return "d"; }
  static Form pack(double value) { return value; }
  struct Holder {
    explicit Holder(Form form) : held(form) {}
    double& get() { return held; }
    double held;
  };
  static lamella_value box(Form form) { return box_double(form); }
  static bool unbox(const lamella_value& v, Form* form) { return unbox_double(v, form); }
};
template <>
struct Param<std::optional<double>> {
  using Form = Maybe<double>;
  static constexpr const char* code() { return "?d"; }
  static Form pack(const std::optional<double>& value) {
    return value ? Form{*value, 1} : Form{0, 0};
  }
  struct Holder {
    explicit Holder(Form form) {
      if (form.has) held = form.value;
    }
    std::optional<double>& get() { return held; }
    std::optional<double> held;
  };
  static lamella_value box(Form form) { return form.has ? box_double(form.value) : box_none(); }
  static bool unbox(const lamella_value& v, Form* form) {
    form->has = v.tag != LAMELLA_NONE;
    form->value = 0;
    return !form->has || unbox_double(v, &form->value);
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
template <>
struct Param<Scalar> {
  using Form = lamella_scalar;
  static constexpr const char* code() { return "S"; }
  static Form pack(const Scalar& value) { return to_c(value); }
  struct Holder {
    explicit Holder(const Form& form) : held(from_c(form)) {}
    Scalar& get() { return held; }
    Scalar held;
  };
  static lamella_value box(const Form& form) { return box_scalar(form); }
  static bool unbox(const lamella_value& v, Form* form) { return unbox_scalar(v, form); }
};
template <>
struct Param<std::optional<Scalar>> {
  using Form = lamella_scalar;
  static constexpr const char* code() { return "?S"; }
  static Form pack(const std::optional<Scalar>& value) {
    return value ? to_c(*value) : Form{{0}, LAMELLA_NONE};
  }
  struct Holder {
    explicit Holder(const Form& form) {
      if (form.tag != LAMELLA_NONE) held = from_c(form);
    }
    std::optional<Scalar>& get() { return held; }
    std::optional<Scalar> held;
  };
  static lamella_value box(const Form& form) { return box_scalar(form); }
  static bool unbox(const lamella_value& v, Form* form) {
    return unbox_scalar(v, form) || v.tag == LAMELLA_NONE;
  }
};

// Spans: View is what kernels are given, T the element, TAG the boxed list.
template <class View, class T, uint8_t TAG>
struct SpanParam {
  using Form = Span<T>;
  struct Holder {
    explicit Holder(Form form) : held(form.data, form.size) {}
    View& get() { return held; }
    View held;
  };
  static lamella_value box(Form form) { return box_span(TAG, form.data, form.size); }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = {static_cast<const T*>(v.as.pointer), v.size};
    return v.tag == TAG;
  }
};
template <class Optional, class View, class T, uint8_t TAG>
struct OptionalSpanParam {
  using Form = Span<T>;
  static Form pack(const Optional& value) {
    return value.has_value() ? Form{View(*value).data(), View(*value).size()}
                             : Form{nullptr, ~size_t{0}};
  }
  struct Holder {
    explicit Holder(Form form) {
      if (!form.none()) held = View(form.data, form.size);
    }
    Optional& get() { return held; }
    Optional held;
  };
  static lamella_value box(Form form) { return box_span(TAG, form.data, form.size); }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = {static_cast<const T*>(v.as.pointer), v.size};
    if (v.tag == LAMELLA_NONE) *form = {nullptr, ~size_t{0}};
    return v.tag == TAG || v.tag == LAMELLA_NONE;
  }
};
#define LAMELLA_SPAN(VIEW, T, CODE, TAG)                                                     \
  template <>                                                                                \
  struct Param<VIEW> : SpanParam<VIEW, T, TAG> {                                             \
    static constexpr const char* code() { return CODE; }                                     \
    static Span<T> pack(const VIEW& value) { return {value.data(), value.size()}; }          \
  };                                                                                         \
  template <>                                                                                \
  struct Param<std::optional<VIEW>> : OptionalSpanParam<std::optional<VIEW>, VIEW, T, TAG> { \
    static constexpr const char* code() { return "?" CODE; }                                 \
  };
LAMELLA_SPAN(IntArrayRef, int64_t, "I", LAMELLA_INT_LIST)
LAMELLA_SPAN(ArrayRef<double>, double, "D", LAMELLA_DOUBLE_LIST)
LAMELLA_SPAN(ArrayRef<bool>, bool, "B", LAMELLA_BOOL_LIST)
LAMELLA_SPAN(std::string_view, char, "s", LAMELLA_STRING)
#undef LAMELLA_SPAN
template <>
struct Param<OptionalIntArrayRef>
    : OptionalSpanParam<OptionalIntArrayRef, IntArrayRef, int64_t, LAMELLA_INT_LIST> {
  static constexpr const char* code() { return "?I"; }
};
template <>
struct Param<std::string> : Param<std::string_view> {
  struct Holder {
    explicit Holder(Span<char> form) : held(form.data, form.size) {}
    std::string& get() { return held; }
    std::string held;
  };
};
template <>
struct Param<std::vector<int64_t>> : Param<IntArrayRef> {
  struct Holder {
    explicit Holder(Span<int64_t> form) : held(form.data, form.data + form.size) {}
    std::vector<int64_t>& get() { return held; }
    std::vector<int64_t> held;
  };
};
template <>
struct Param<std::vector<double>> : Param<ArrayRef<double>> {
  struct Holder {
    explicit Holder(Span<double> form) : held(form.data, form.data + form.size) {}
    std::vector<double>& get() { return held; }
    std::vector<double> held;
  };
};
template <size_t N>
struct Param<std::array<bool, N>> : Param<ArrayRef<bool>> {
  static Span<bool> pack(const std::array<bool, N>& value) { return {value.data(), N}; }
  struct Holder {
    explicit Holder(Span<bool> form) {
      LAMELLA_CHECK(form.size == N, "expected a list of ", N, " bools, got ", form.size);
      for (size_t i = 0; i < N; ++i) held[i] = form.data[i];
    }
    std::array<bool, N>& get() { return held; }
    std::array<bool, N> held;
  };
};

template <>
struct Param<std::optional<Generator>> {
  using Form = lamella_object*;
  static constexpr const char* code() { return "?G"; }
  static Form pack(const std::optional<Generator>& value) { return value ? value->get() : nullptr; }
  struct Holder {
    explicit Holder(Form form) {
      if (form != nullptr) held = Generator::borrow(form);
    }
    std::optional<Generator>& get() { return held; }
    std::optional<Generator> held;
  };
  static lamella_value box(Form form) {
    lamella_value v = box_none();
    if (form != nullptr) {
      v.tag = LAMELLA_GENERATOR;
      v.as.pointer = form;
    }
    return v;
  }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = v.tag == LAMELLA_GENERATOR ? static_cast<lamella_object*>(v.as.pointer) : nullptr;
    return v.tag == LAMELLA_GENERATOR || v.tag == LAMELLA_NONE;
  }
};
template <>
struct Param<Generator> : Param<std::optional<Generator>> {
  static constexpr const char* code() { return "G"; }
  static Form pack(const Generator& value) { return value.get(); }
  struct Holder {
    explicit Holder(Form form) : held(Generator::borrow(form)) {}
    Generator& get() { return held; }
    Generator held;
  };
};

// Conversions of the types that travel as a whole value. FromValue<T>::get(IValue).
template <class T>
struct FromValue;
template <>
struct FromValue<IValue> {
  static IValue get(const IValue& v) { return v; }
};
template <>
struct FromValue<std::string> {
  static std::string get(const IValue& v) { return v.toStringRef(); }
};
template <>
struct FromValue<Scalar> {
  static Scalar get(const IValue& v) { return v.toScalar(); }
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
template <class T>
struct ToValue {
  static IValue get(const T& value) { return IValue(value); }
};
template <class T>
struct ToValue<std::vector<T>> {
  static IValue get(const std::vector<T>& list) {
    if constexpr (std::is_constructible_v<IValue, const std::vector<T>&>) {
      return IValue(list);
    } else {
      std::vector<IValue> items;
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
template <>
struct Param<IValue> : ValueParam<IValue> {};
template <>
struct Param<std::vector<Scalar>> : ValueParam<std::vector<Scalar>> {};
template <>
struct Param<std::vector<std::string>> : ValueParam<std::vector<std::string>> {};
template <>
struct Param<ArrayRef<Scalar>> : ValueParam<std::vector<Scalar>> {
  static PackedValue pack(ArrayRef<Scalar> value) {
    return ValueParam<std::vector<Scalar>>::pack(value.vec());
  }
  struct Holder {
    explicit Holder(Form form)
        : items(FromValue<std::vector<Scalar>>::get(IValue::from_borrowed(*form))), held(items) {}
    ArrayRef<Scalar>& get() { return held; }
    std::vector<Scalar> items;
    ArrayRef<Scalar> held;
  };
};

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
