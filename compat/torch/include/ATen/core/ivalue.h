// c10::IValue, c10::Type.
#pragma once
#include <ATen/core/List.h>
#include <c10/lamella_names.h>

#include "lamella/core/ivalue.h"
#include "lamella/dispatch/value_type.h"

namespace c10 {
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
namespace c10::ivalue {
using Tuple = lamella::TupleOfValue;
using ConstantString = lamella::TextOfValue;
}  // namespace c10::ivalue
namespace torch {
using c10::getCustomClassType;
}  // namespace torch
