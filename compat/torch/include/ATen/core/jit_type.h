// c10::IValue, c10::Type, as far as most code needs them; ATen/core/ivalue.h has the rest.
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
#undef LAMELLA_TYPE
// What is known of each dimension; here everything is.
template <class T>
class VaryingShape {
 public:
  explicit VaryingShape(std::vector<std::optional<T>> entries) : entries_(std::move(entries)) {}
  const std::optional<std::vector<std::optional<T>>>& sizes() const { return entries_; }
  std::optional<size_t> size() const { return entries_->size(); }
  const std::optional<T>& operator[](size_t i) const { return entries_->at(i); }
  bool isComplete() const { return true; }

 private:
  std::optional<std::vector<std::optional<T>>> entries_;
};
struct Stride {
  std::optional<size_t> stride_index_;
  std::optional<bool> contiguous_;
  std::optional<size_t> stride_;
};
class TensorType {
 public:
  static TypePtr get() { return TypePtr("Tensor"); }
  static TensorType create(std::optional<lamella::ScalarType>, std::optional<lamella::Device>,
                           lamella::IntArrayRef sizes, lamella::IntArrayRef strides,
                           std::optional<bool> requires_grad);
  // The dimensions from the innermost one on.
  const VaryingShape<Stride>& stride_properties() const { return strides_; }
  const TensorType* operator->() const { return this; }

 private:
  explicit TensorType(VaryingShape<Stride> strides) : strides_(std::move(strides)) {}
  VaryingShape<Stride> strides_;
};
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
inline TensorType TensorType::create(std::optional<lamella::ScalarType>,
                                     std::optional<lamella::Device>, lamella::IntArrayRef sizes,
                                     lamella::IntArrayRef strides, std::optional<bool>) {
  std::vector<int64_t> order;
  const auto count = static_cast<int64_t>(sizes.size());
  const bool channels_last =
      (count == 4 || count == 5) && lamella::detail::strides_like_channels_last(sizes, strides);
  if (channels_last) order.push_back(1);
  for (int64_t d = count - 1; d >= 0; --d) {
    if (d != 1 || !channels_last) order.push_back(d);
  }
  std::vector<int64_t> contiguous(sizes.size());
  lamella::contiguous_strides(sizes, contiguous.data());
  const bool is_sorted = channels_last || lamella::IntArrayRef(contiguous) == strides;
  // Insertion sort, as iterators order dimensions. A stride of 0 is neither less nor greater.
  for (int64_t i = is_sorted ? count : 1; i < count; ++i) {
    for (int64_t inner = i - 1, moved = i; inner >= 0; --inner) {
      int64_t &a = order[inner], &b = order[moved];
      if (strides[a] == 0 || strides[b] == 0 || (strides[a] == strides[b] && sizes[a] <= sizes[b]))
        continue;
      if (strides[a] < strides[b]) break;
      std::swap(a, b);
      moved = inner;
    }
  }
  std::vector<std::optional<Stride>> all;
  for (int64_t d : order) {
    all.push_back(Stride{static_cast<size_t>(d), std::nullopt, static_cast<size_t>(strides[d])});
  }
  return TensorType(VaryingShape<Stride>(std::move(all)));
}
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
