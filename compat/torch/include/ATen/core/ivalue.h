// c10::IValue, c10::Type.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/lamella_names.h>
#include <c10/util/intrusive_ptr.h>

#include "lamella/core/ivalue.h"
#include "lamella/dispatch/value_type.h"
#include "lamella/dispatch/whole_values.h"

namespace c10 {
using std::string;
using Type = lamella::ValueType;
using TypePtr = lamella::ValueTypePtr;
template <class T>
TypePtr getTypePtr() {
  return TypePtr::of<T>();
}
template <class T>
TypePtr getCustomClassType() {
  return TypePtr::of<T>();
}
// IntType::get(), and types that are made of others.
#define LAMELLA_TYPE(name, text)                   \
  struct name {                                    \
    static TypePtr get() { return TypePtr(text); } \
  };
LAMELLA_TYPE(AnyType, "Any")
LAMELLA_TYPE(BoolType, "bool")
LAMELLA_TYPE(ComplexType, "complex")
LAMELLA_TYPE(DeviceObjType, "Device")
LAMELLA_TYPE(FloatType, "float")
LAMELLA_TYPE(GeneratorType, "Generator")
LAMELLA_TYPE(IntType, "int")
LAMELLA_TYPE(NoneType, "NoneType")
LAMELLA_TYPE(NumberType, "Scalar")
LAMELLA_TYPE(StringType, "str")
LAMELLA_TYPE(TensorType, "Tensor")
#undef LAMELLA_TYPE
struct ListType {
  static TypePtr create(const TypePtr& entry) { return TypePtr(entry->str() + "[]"); }
};
struct OptionalType {
  static TypePtr create(const TypePtr& value) { return TypePtr(value->str() + "?"); }
};
struct DictType {
  static TypePtr create(const TypePtr& key, const TypePtr& value) {
    return TypePtr(lamella::str("Dict(", key->str(), ", ", value->str(), ")"));
  }
};
}  // namespace c10
namespace c10::impl {
// Lists and dictionaries of values of any type, and what is made of them.
using GenericList = lamella::List<lamella::IValue>;
using GenericDict = lamella::Dict<lamella::IValue, lamella::IValue>;
// An entry of another type is an error.
template <class T>
GenericList toList(const lamella::List<T>& list) {
  GenericList generic;
  for (const T& entry : list.vec()) generic.push_back(lamella::abi::ToValue<T>::get(entry));
  return generic;
}
template <class K, class V>
GenericDict toGenericDict(const lamella::Dict<K, V>& dict) {
  using lamella::abi::ToValue;
  GenericDict generic;
  for (const auto& it : dict)
    generic.insert(ToValue<K>::get(it.key()), ToValue<V>::get(it.value()));
  return generic;
}
template <class T>
lamella::List<T> toTypedList(const GenericList& list) {
  lamella::List<T> typed;
  for (const auto& entry : list.vec()) typed.push_back(lamella::abi::FromValue<T>::get(entry));
  return typed;
}
template <class K, class V>
lamella::Dict<K, V> toTypedDict(const GenericDict& dict) {
  using lamella::abi::FromValue;
  lamella::Dict<K, V> typed;
  for (const auto& it : dict)
    typed.insert(FromValue<K>::get(it.key()), FromValue<V>::get(it.value()));
  return typed;
}
}  // namespace c10::impl
namespace c10::ivalue {
using Tuple = lamella::TupleOfValue;
using ConstantString = lamella::TextOfValue;
}  // namespace c10::ivalue
namespace torch {
using c10::getCustomClassType;
}  // namespace torch
