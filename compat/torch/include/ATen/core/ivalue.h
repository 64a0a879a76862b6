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
}  // namespace c10
namespace c10::impl {
// Lists and dictionaries of values of any type, and what is made of them.
using GenericList = lamella::List<lamella::IValue>;
using GenericDict = lamella::Dict<lamella::IValue, lamella::IValue>;
template <class T>
GenericList toList(const lamella::List<T>& list) {
  return lamella::abi::to_generic(list);
}
template <class K, class V>
GenericDict toGenericDict(const lamella::Dict<K, V>& dict) {
  return lamella::abi::to_generic(dict);
}
template <class T>
lamella::List<T> toTypedList(const GenericList& list) {
  return lamella::abi::to_typed<T>(list);
}
template <class K, class V>
lamella::Dict<K, V> toTypedDict(const GenericDict& dict) {
  return lamella::abi::to_typed<K, V>(dict);
}
}  // namespace c10::impl
namespace c10::ivalue {
using Tuple = lamella::TupleOfValue;
using ConstantString = lamella::TextOfValue;
}  // namespace c10::ivalue
namespace torch {
using c10::getCustomClassType;
}  // namespace torch
