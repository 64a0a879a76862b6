// How each C++ return type crosses the ABI; the second half of Note [Typed convention] in
// abi_types.h.
#pragma once
#include "lamella/dispatch/abi_types.h"

namespace lamella::abi {

// Return<R> has: Form, code(), store(R&&, Form*), load(Form&) -> R, box(Form&) -> owned value,
// unbox(owned value, Form*) -> whether it fits (it then owns the value).

template <class R, class Enable = void>
struct Return {  // everything without a form of its own travels as a value
  using Form = lamella_value;
  // The type letter of a parameter of the same type: schemas have no other letters for returns.
  static constexpr const char* code() {
    if constexpr (requires { Param<R>::code(); }) {
      return Param<R>::code();
    } else {
      return "V";
    }
  }
  static void store(R&& value, Form* form) { *form = ToValue<R>::get(value).unsafe_release(); }
  static R load(Form& form) {
    IValue value = IValue::adopt(form);
    if constexpr (std::is_same_v<R, std::vector<int64_t>>)
      return value.toIntVector();
    else if constexpr (std::is_same_v<R, std::vector<double>>)
      return value.toDoubleVector();
    else
      return FromValue<R>::get(value);
  }
  static lamella_value box(Form& form) { return form; }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = v;
    return true;
  }
};
template <class R>
struct Return<R, std::enable_if_t<is_tensor<R>>> {
  using Form = lamella_tensor*;
  static constexpr const char* code() { return "T"; }
  static void store(R&& value, Form* form) { *form = value.unsafe_release(); }
  static R load(Form& form) { return R(TensorBase::adopt(form)); }
  static lamella_value box(Form& form) { return box_tensor(form); }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = v.tag == LAMELLA_TENSOR ? v.as.tensor : nullptr;
    return v.tag == LAMELLA_TENSOR || v.tag == LAMELLA_NONE;
  }
};
template <class T>
struct Return<std::vector<T>, std::enable_if_t<is_tensor<T>>> {
  using Form = lamella_value;
  static constexpr const char* code() { return "L"; }
  static void store(std::vector<T>&& value, Form* form) { *form = IValue(value).unsafe_release(); }
  static std::vector<T> load(Form& form) {
    return IValue::adopt(form).template toTensorList<T>().vec();
  }
  static lamella_value box(Form& form) { return form; }
  static bool unbox(const lamella_value& v, Form* form) {
    *form = v;
    return v.tag == LAMELLA_TENSOR_LIST;
  }
};
template <class R>
struct Return<R, std::enable_if_t<is_word<R> || std::is_same_v<R, double>>> {
  using Form = typename Param<R>::Form;
  static constexpr const char* code() { return Param<R>::code(); }
  static void store(R value, Form* form) { *form = Param<R>::pack(value); }
  static R load(Form& form) { return typename Param<R>::Holder(form).get(); }
  static lamella_value box(Form& form) { return Param<R>::box(form); }
  static bool unbox(const lamella_value& v, Form* form) { return Param<R>::unbox(v, form); }
};
template <>
struct Return<Scalar> {
  using Form = lamella_scalar;
  static constexpr const char* code() { return "S"; }
  static void store(const Scalar& value, Form* form) { *form = to_c(value); }
  static Scalar load(Form& form) { return from_c(form); }
  static lamella_value box(Form& form) { return IValue(from_c(form)).unsafe_release(); }
  static bool unbox(const lamella_value& v, Form* form) {
    bool fits = unbox_scalar(v, form);
    lamella_value owned = v;
    lamella_value_release(&owned);
    return fits;
  }
};

template <class R>
struct is_tuple : std::false_type {};
template <class... R>
struct is_tuple<std::tuple<R...>> : std::true_type {};

template <class... R>
struct ReturnForms;
template <>
struct ReturnForms<> {};
template <class R, class... Rest>
struct ReturnForms<R, Rest...> {
  typename Return<R>::Form first;
  [[no_unique_address]] ReturnForms<Rest...> rest;
};

}  // namespace lamella::abi
