// IValue: one argument or return of a boxed call, owned. 16 bytes over lamella_value.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lamella/abi/abi.h"
#include "lamella/core/array_ref.h"
#include "lamella/core/complex.h"
#include "lamella/core/device.h"
#include "lamella/core/error.h"
#include "lamella/core/generator.h"
#include "lamella/core/layout.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/scalar.h"
#include "lamella/core/scalar_type.h"
#include "lamella/core/tensor_base.h"

namespace lamella {

namespace detail {
inline const char* tag_name(uint8_t tag) {
  constexpr const char* names[] = {"None", "Tensor", "int",   "float",     "bool",   "complex",
                                   "str",  "Device", "int[]", "float[]",   "bool[]", "Tensor[]",
                                   "list", "tuple",  "Dict",  "Generator", "object"};
  return tag < sizeof(names) / sizeof(names[0]) ? names[tag] : "?";
}
LAMELLA_LAZY [[noreturn]] LAMELLA_COLD inline void throw_tag(const char* expected, uint8_t got) {
  throw TypeError(str("IValue: expected ", expected, ", got ", tag_name(got)));
}
// Copies a value as two words. One 16-byte load of words just written would wait for both stores
// to leave the store buffer, which costs more than a whole boxed call; the empty asm keeps the
// compiler from joining them.
inline void copy_value(lamella_value& to, const lamella_value& from) {
  uint64_t words[2];
  __builtin_memcpy(words, &from, sizeof(words));
  asm("" : "+r"(words[0]), "+r"(words[1]));
  __builtin_memcpy(&to, words, sizeof(words));
}
// Whether lists of a type have a tag of their own, and a constructor.
template <class T>
inline constexpr bool has_list_tag =
    __is_base_of(TensorBase, T) || __is_same(T, int64_t) || __is_same(T, double);
template <class T>
inline constexpr bool converts_to_value = false;
// Whether releasing a value of this tag can have an effect.
inline bool tag_owns(const lamella_value& v) {
  return v.tag == LAMELLA_TENSOR || (v.flags & LAMELLA_VALUE_BLOCK) != 0 ||
         v.tag >= LAMELLA_GENERATOR;
}
}  // namespace detail

template <class T>
class List;
template <class K, class V>
class Dict;
namespace detail {
template <class T>
struct intrusive_target_default_null_type;
}  // namespace detail
template <class T, class Null = detail::intrusive_target_default_null_type<T>>
class intrusive_ptr;
class ValueTypePtr;
class TextOfValue;
class TupleOfValue;
class Stream;
class TensorMemory;
template <class T>
class ObjectOfValue;
class BlobOfValue;
class FutureOfValue;
class EnumOfValue;
namespace abi {
template <class T>
struct ToValue;
template <class T>
struct FromValue;
}  // namespace abi

// Holds None, a Tensor, a number, a string, a Device, a list, a tuple, a dict, a Generator or a
// custom object. Copies share lists and strings; to*() raises TypeError on another tag.
class IValue {
 public:
  IValue() { clear(); }
  IValue(std::nullopt_t) { clear(); }
  IValue(const TensorBase& tensor) { set_tensor(TensorBase(tensor).unsafe_release()); }
  IValue(TensorBase&& tensor) { set_tensor(tensor.unsafe_release()); }
  IValue(int64_t number) { set_int(LAMELLA_INT, number); }
  IValue(int number) { set_int(LAMELLA_INT, number); }
  IValue(bool flag) { set_int(LAMELLA_BOOL, flag); }
  IValue(double number) {
    clear();
    value_.tag = LAMELLA_DOUBLE;
    value_.as.d = number;
  }
  IValue(ScalarType type) { set_int(LAMELLA_INT, static_cast<int64_t>(type)); }
  IValue(Layout layout) { set_int(LAMELLA_INT, static_cast<int64_t>(layout)); }
  IValue(MemoryFormat format) { set_int(LAMELLA_INT, static_cast<int64_t>(format)); }
  IValue(Device device) { set_int(LAMELLA_DEVICE, pack_device(device)); }
  IValue(complex<double> number) {
    allocate(LAMELLA_COMPLEX, 2);
    static_cast<double*>(value_.as.pointer)[0] = number.real();
    static_cast<double*>(value_.as.pointer)[1] = number.imag();
  }
  IValue(const Scalar& number);
  IValue(std::string_view text) {
    allocate(LAMELLA_STRING, text.size());
    if (!text.empty()) __builtin_memcpy(value_.as.pointer, text.data(), text.size());
  }
  // Templates, so that other arguments are not tried as strings and vectors.
  template <class Traits, class A>
  IValue(const std::basic_string<char, Traits, A>& text) : IValue(std::string_view(text)) {}
  IValue(const char* text) : IValue(std::string_view(text)) {}
  IValue(IntArrayRef list) { copy_list(LAMELLA_INT_LIST, list.data(), list.size()); }
  IValue(ArrayRef<double> list) { copy_list(LAMELLA_DOUBLE_LIST, list.data(), list.size()); }
  // Any class over TensorBase, which shares its representation.
  template <class T>
    requires(__is_base_of(TensorBase, T))
  IValue(ArrayRef<T> list) {
    static_assert(sizeof(T) == sizeof(lamella_tensor*));
    allocate(LAMELLA_TENSOR_LIST, list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      static_cast<lamella_tensor**>(value_.as.pointer)[i] = TensorBase(list[i]).unsafe_release();
    }
  }
  template <class T>
    requires(!__is_base_of(TensorBase, T) && !detail::has_list_tag<T>)
  IValue(ArrayRef<T> list) : IValue(abi::ToValue<std::vector<T>>::get(list.vec())) {}
  template <class T>
    requires detail::has_list_tag<T>
  IValue(const std::vector<T>& list) : IValue(ArrayRef<T>(list)) {}
  // Types of other headers, which say so by converts_to_value.
  template <class T>
    requires detail::converts_to_value<T>
  IValue(const T& other) : IValue(abi::ToValue<T>::get(other)) {}
  template <class T>
  IValue(const std::optional<T>& value) : IValue() {
    if (value.has_value()) *this = IValue(*value);
  }
  IValue(const Generator& generator);
  // An object of a registered class. Needs intrusive_ptr.h.
  template <class T>
  IValue(const intrusive_ptr<T>& object);
  // Containers of the types above. They need dispatch/whole_values.h.
  template <class... T>
  IValue(const std::tuple<T...>& values) : IValue(abi::ToValue<std::tuple<T...>>::get(values)) {}
  template <class T>
  IValue(const List<T>& list) : IValue(abi::ToValue<List<T>>::get(list)) {}
  template <class K, class V>
  IValue(const Dict<K, V>& dict) : IValue(abi::ToValue<Dict<K, V>>::get(dict)) {}
  template <class T>
    requires(!detail::has_list_tag<T>)
  IValue(const std::vector<T>& list) : IValue(abi::ToValue<std::vector<T>>::get(list)) {}
  static IValue list(ArrayRef<IValue> items) { return IValue(LAMELLA_LIST, items); }
  static IValue tuple(ArrayRef<IValue> items) { return IValue(LAMELLA_TUPLE, items); }
  // Keys and values in turn.
  static IValue dict(ArrayRef<IValue> items) { return IValue(LAMELLA_DICT, items); }

  IValue(const IValue& other) { copy_from(other.value_); }
  IValue(IValue&& other) noexcept {
    detail::copy_value(value_, other.value_);
    other.clear();
  }
  IValue& operator=(const IValue& other) {
    IValue copy(other);
    detail::swap_plain(value_, copy.value_);
    return *this;
  }
  IValue& operator=(IValue&& other) noexcept {
    const lamella_value former = value_;
    detail::copy_value(value_, other.value_);
    other.clear();
    if (detail::tag_owns(former)) adopt(former);
    return *this;
  }
  ~IValue() {
    if (detail::tag_owns(value_)) release();
  }
  void swap(IValue& other) noexcept { detail::swap_plain(value_, other.value_); }

  // An owned copy of a borrowed value; the borrowed one stays with its owner.
  static IValue from_borrowed(const lamella_value& value) {
    IValue result;
    result.copy_from(value);
    return result;
  }
  // Takes over an owned value.
  static IValue adopt(const lamella_value& value) {
    IValue result;
    detail::copy_value(result.value_, value);
    return result;
  }
  lamella_value unsafe_release() {
    lamella_value value;
    detail::copy_value(value, value_);
    clear();
    return value;
  }
  const lamella_value& value() const { return value_; }
  uint8_t tag() const { return value_.tag; }
  // Whether it holds a counted pointer, and how many values hold that one; 1 for plain values.
  bool isPtrType() const { return detail::tag_owns(value_) && value_.as.pointer != nullptr; }
  const void* internalToPointer() const { return value_.as.pointer; }
  const void* unsafeToTensorImpl() const { return value_.as.tensor; }
  LAMELLA_LAZY size_t use_count() const {
    if (!isPtrType()) return isTensor() ? 0 : 1;
    const bool block = (value_.flags & LAMELLA_VALUE_BLOCK) != 0;
    const uint32_t& references =
        isTensor() ? value_.as.tensor->references
        : block    ? (static_cast<lamella_block*>(value_.as.pointer) - 1)->references
                   : static_cast<lamella_object*>(value_.as.pointer)->references;
    return __atomic_load_n(&references, __ATOMIC_RELAXED);
  }
  const char* tagKind() const { return detail::tag_name(value_.tag); }

  bool isNone() const { return value_.tag == LAMELLA_NONE; }
  bool isTensor() const { return value_.tag == LAMELLA_TENSOR; }
  bool isInt() const { return value_.tag == LAMELLA_INT; }
  bool isDouble() const { return value_.tag == LAMELLA_DOUBLE; }
  bool isBool() const { return value_.tag == LAMELLA_BOOL; }
  bool isComplexDouble() const { return value_.tag == LAMELLA_COMPLEX; }
  bool isScalar() const { return isInt() || isDouble() || isBool() || isComplexDouble(); }
  bool isString() const { return value_.tag == LAMELLA_STRING; }
  bool isDevice() const { return value_.tag == LAMELLA_DEVICE; }
  bool isIntList() const { return value_.tag == LAMELLA_INT_LIST; }
  bool isDoubleList() const { return value_.tag == LAMELLA_DOUBLE_LIST; }
  bool isBoolList() const { return value_.tag == LAMELLA_BOOL_LIST; }
  bool isTensorList() const { return value_.tag == LAMELLA_TENSOR_LIST; }
  bool isTuple() const { return value_.tag == LAMELLA_TUPLE; }
  bool isList() const {
    return value_.tag == LAMELLA_LIST ||
           (value_.tag >= LAMELLA_INT_LIST && value_.tag <= LAMELLA_TENSOR_LIST);
  }
  bool isGenericDict() const { return value_.tag == LAMELLA_DICT; }
  bool isGenerator() const { return value_.tag == LAMELLA_GENERATOR; }
  bool isObject() const { return value_.tag == LAMELLA_OBJECT; }
  bool isCustomClass() const {
    return isObject() &&
           static_cast<lamella_object*>(value_.as.pointer)->reserved == LAMELLA_OBJECT_OF_CLASS;
  }

  // T is Tensor unless told otherwise; any class over TensorBase.
  template <class T = Tensor>
  T toTensor() const& {
    if (isNone()) return T();
    expect(LAMELLA_TENSOR);
    return T(TensorBase::borrow(value_.as.tensor));
  }
  template <class T = Tensor>
  T toTensor() && {
    if (isNone()) return T();
    expect(LAMELLA_TENSOR);
    return T(TensorBase::adopt(unsafe_release().as.tensor));
  }
  int64_t toInt() const {
    if (value_.tag != LAMELLA_BOOL) expect(LAMELLA_INT);
    return value_.as.i;
  }
  int64_t toSymInt() const { return toInt(); }
  double toDouble() const {
    if (value_.tag == LAMELLA_INT) return static_cast<double>(value_.as.i);
    expect(LAMELLA_DOUBLE);
    return value_.as.d;
  }
  bool toBool() const {
    expect(LAMELLA_BOOL);
    return value_.as.i != 0;
  }
  complex<double> toComplexDouble() const {
    expect(LAMELLA_COMPLEX);
    const double* z = static_cast<const double*>(value_.as.pointer);
    return {z[0], z[1]};
  }
  Scalar toScalar() const;
  LAMELLA_LAZY std::string_view toStringView() const {
    expect(LAMELLA_STRING);
    return std::string_view(static_cast<const char*>(value_.as.pointer), size_t{value_.size});
  }
  LAMELLA_LAZY std::string toStringRef() const { return std::string(toStringView()); }
  ScalarType toScalarType() const { return static_cast<ScalarType>(toInt()); }
  Layout toLayout() const { return static_cast<Layout>(toInt()); }
  MemoryFormat toMemoryFormat() const { return static_cast<MemoryFormat>(toInt()); }
  Device toDevice() const {
    expect(LAMELLA_DEVICE);
    return unpack_device(value_.as.i);
  }
  Generator toGenerator() const;
  IntArrayRef toIntList() const {
    expect(LAMELLA_INT_LIST);
    return {static_cast<const int64_t*>(value_.as.pointer), value_.size};
  }
  template <class T = int64_t>
  std::vector<T> toIntVector() const {
    return ArrayRef<T>(toIntList()).vec();
  }
  template <class T = int64_t>
  std::vector<T> toDimVector() const {
    return toIntVector<T>();
  }
  template <class T = int64_t>
  std::vector<T> toSymIntVector() const {
    return toIntVector<T>();
  }
  ArrayRef<double> toDoubleList() const {
    expect(LAMELLA_DOUBLE_LIST);
    return {static_cast<const double*>(value_.as.pointer), value_.size};
  }
  template <class T = double>
  std::vector<T> toDoubleVector() const {
    return ArrayRef<T>(toDoubleList()).vec();
  }
  template <class T = Tensor>
  ArrayRef<T> toTensorList() const {
    expect(LAMELLA_TENSOR_LIST);
    return {static_cast<const T*>(value_.as.pointer), value_.size};
  }
  template <class T = Tensor>
  std::vector<T> toTensorVector() const {
    return toTensorList<T>().vec();
  }
  // TypeError for an object of another class. Needs intrusive_ptr.h.
  template <class T>
  intrusive_ptr<T> toCustomClass() const;
  template <class T>
  bool holds() const;
  // Objects of classes that value_objects.h has.
  LAMELLA_LAZY bool isBlob() const { return holds<detail::Lazily<lazy_, BlobOfValue>>(); }
  LAMELLA_LAZY bool isFuture() const { return holds<detail::Lazily<lazy_, FutureOfValue>>(); }
  LAMELLA_LAZY bool isEnum() const { return holds<detail::Lazily<lazy_, EnumOfValue>>(); }
  LAMELLA_LAZY bool isStream() const { return holds<ObjectOf<lazy_, Stream>>(); }
  LAMELLA_LAZY bool isStorage() const { return holds<ObjectOf<lazy_, TensorMemory>>(); }
  LAMELLA_LAZY auto toFuture() const {
    return toCustomClass<detail::Lazily<lazy_, FutureOfValue>>();
  }
  LAMELLA_LAZY auto toStream() const { return toCustomClass<ObjectOf<lazy_, Stream>>()->value; }
  LAMELLA_LAZY auto toStorage() const {
    return toCustomClass<ObjectOf<lazy_, TensorMemory>>()->value;
  }
  // Whether both are one object, or equal as plain values; whether they share an object or memory;
  // equality as a value; a number for unordered containers; all tensors and objects within. These
  // need value_objects.h.
  struct HashAliasedIValues;
  LAMELLA_LAZY bool is(const IValue& other) const;
  LAMELLA_LAZY bool isAliasOf(const IValue& other) const;
  LAMELLA_LAZY IValue equals(const IValue& other) const;
  LAMELLA_LAZY size_t hash() const;
  LAMELLA_LAZY void getSubValues(detail::Lazily<lazy_, HashAliasedIValues>& values) const;
  // A list of any kind, entry by entry. Needs list.h.
  LAMELLA_LAZY List<IValue> toList() const;
  LAMELLA_LAZY bool isComplexDoubleList() const {
    if (value_.tag != LAMELLA_LIST) return false;
    for (const IValue& entry : elements()) {
      if (!entry.isComplexDouble()) return false;
    }
    return value_.size != 0;
  }
  LAMELLA_LAZY auto toComplexDoubleList() const {
    return to<List<detail::Lazily<lazy_, complex<double>>>>();
  }
  LAMELLA_LAZY auto toComplexDoubleVector() const { return toComplexDoubleList<lazy_>().vec(); }
  // Both need dispatch/value_type.h, which documents the results.
  LAMELLA_LAZY ValueTypePtr type() const;
  LAMELLA_LAZY TextOfValue toString() const;
  LAMELLA_LAZY TupleOfValue toTuple() const;
  LAMELLA_LAZY TupleOfValue toTupleRef() const;
  LAMELLA_LAZY std::vector<IValue> toListRef() const;
  LAMELLA_LAZY Dict<IValue, IValue> toGenericDict() const;
  // Elements of a generic list, tuple or dict (keys and values in turn).
  ArrayRef<IValue> elements() const {
    if (value_.tag != LAMELLA_TUPLE && value_.tag != LAMELLA_DICT) expect(LAMELLA_LIST);
    return ArrayRef<IValue>(static_cast<const IValue*>(value_.as.pointer), value_.size);
  }

  // Converts the value to a kernel parameter of type T. Needs dispatch/whole_values.h.
  template <class T>
  T to() const {
    return abi::FromValue<T>::get(*this);
  }
  template <class T>
  std::optional<T> toOptional() const {
    return to<std::optional<T>>();
  }

  static int64_t pack_device(Device device) {
    return static_cast<uint8_t>(device.type()) |
           (static_cast<int64_t>(static_cast<uint8_t>(device.index())) << 8);
  }
  static Device unpack_device(int64_t bits) {
    return Device(static_cast<DeviceType>(bits & 0xff), static_cast<int8_t>((bits >> 8) & 0xff));
  }

 private:
  template <int lazy_, class T>
  using ObjectOf = ObjectOfValue<detail::Lazily<lazy_, T>>;
  IValue(uint8_t tag, ArrayRef<IValue> items) {
    allocate(tag, items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      static_cast<lamella_value*>(value_.as.pointer)[i] = IValue(items[i]).unsafe_release();
    }
  }
  void clear() { value_ = lamella_value{{0}, 0, LAMELLA_NONE, 0, 0}; }
  void set_int(uint8_t tag, int64_t number) {
    clear();
    value_.tag = tag;
    value_.as.i = number;
  }
  void set_tensor(lamella_tensor* tensor) {
    clear();
    value_.tag = LAMELLA_TENSOR;
    value_.as.tensor = tensor;
  }
  void allocate(uint8_t tag, size_t size) {
    clear();
    detail::check(lamella_value_allocate(tag, size, &value_));
  }
  template <class T>
  void copy_list(uint8_t tag, const T* data, size_t size) {
    allocate(tag, size);
    if (size != 0) __builtin_memcpy(value_.as.pointer, data, size * sizeof(T));
  }
  void copy_from(const lamella_value& other) {
    if (other.tag == LAMELLA_TENSOR) {
      set_tensor(TensorBase(TensorBase::borrow(other.as.tensor)).unsafe_release());
    } else if (other.tag <= LAMELLA_BOOL || other.tag == LAMELLA_DEVICE) {
      value_ = other;
    } else {
      clear();
      detail::check(lamella_value_copy(&other, &value_));
    }
  }
  void release() {
    if (value_.tag == LAMELLA_TENSOR) {
      TensorBase::adopt(value_.as.tensor);
    } else {
      lamella_value_release(&value_);
    }
  }
  LAMELLA_LAZY void expect(uint8_t tag) const {
    if (value_.tag != tag) detail::throw_tag(detail::tag_name(tag), value_.tag);
  }

  lamella_value value_;
};
static_assert(sizeof(IValue) == sizeof(lamella_value));

inline IValue::IValue(const Scalar& number) : IValue() {
  if (number.isComplex()) {
    *this = IValue(number.toComplexDouble());
  } else if (number.isFloatingPoint()) {
    *this = IValue(number.toDouble());
  } else if (number.isBoolean()) {
    *this = IValue(number.toBool());
  } else {
    *this = IValue(number.toLong());
  }
}
inline Scalar IValue::toScalar() const {
  switch (value_.tag) {
    case LAMELLA_INT:
      return Scalar(value_.as.i);
    case LAMELLA_DOUBLE:
      return Scalar(value_.as.d);
    case LAMELLA_BOOL:
      return Scalar(value_.as.i != 0);
    case LAMELLA_COMPLEX:
      return Scalar(toComplexDouble());
    default:
      detail::throw_tag("a number", value_.tag);
  }
}
inline IValue::IValue(const Generator& generator) {
  clear();
  if (!generator.defined()) return;
  value_.tag = LAMELLA_GENERATOR;
  value_.as.pointer = Generator(generator).unsafe_release();
}
inline Generator IValue::toGenerator() const {
  expect(LAMELLA_GENERATOR);
  return Generator::borrow(static_cast<lamella_object*>(value_.as.pointer));
}

// The arguments or returns of a boxed call as PyTorch's boxed kernels see them.
using Stack = std::vector<IValue>;

// Uninitialised room for any number of arguments or returns of a boxed call, on the caller's stack
// if they are few. Does not own the values.
class ValueBuffer {
 public:
  explicit ValueBuffer(uint32_t count) {
    if (LAMELLA_UNLIKELY(count > kInline)) data_ = new lamella_value[count];
  }
  ValueBuffer(const ValueBuffer&) = delete;
  ValueBuffer& operator=(const ValueBuffer&) = delete;
  ~ValueBuffer() {
    if (LAMELLA_UNLIKELY(data_ != inline_)) delete[] data_;
  }
  lamella_value* data() { return data_; }
  lamella_value& operator[](size_t i) { return data_[i]; }

 private:
  static constexpr uint32_t kInline = 16;
  lamella_value inline_[kInline];
  lamella_value* data_ = inline_;
};

// PyTorch's spellings for working on the end of a stack.
LAMELLA_LAZY IValue pop(Stack& stack) {
  auto& values = detail::lazily<lazy_>(stack);
  IValue value = std::move(values.back());
  values.pop_back();
  return value;
}
LAMELLA_LAZY IValue pop(Stack* stack) { return pop(*stack); }
LAMELLA_LAZY detail::Lazily<lazy_, Stack> pop(Stack& stack, size_t n) {
  auto& from = detail::lazily<lazy_>(stack);
  detail::Lazily<lazy_, Stack> values;
  for (size_t i = from.size() - n; i < from.size(); ++i) values.push_back(std::move(from[i]));
  from.resize(from.size() - n);
  return values;
}
// The last values, in order, into as many variables.
template <class... T>
void pop(Stack& stack, T&... values) {
  auto& from = detail::lazily<int{sizeof...(T)}>(stack);
  size_t i = from.size() - sizeof...(T);
  ((values = from[i++].template to<T>()), ...);
  from.resize(from.size() - sizeof...(T));
}
LAMELLA_LAZY void drop(Stack& stack, size_t n) {
  auto& values = detail::lazily<lazy_>(stack);
  values.resize(values.size() - n);
}
LAMELLA_LAZY void drop(Stack* stack, size_t n) { drop(*stack, n); }
LAMELLA_LAZY const IValue& peek(const Stack& stack, size_t i, size_t n) {
  auto& values = detail::lazily<lazy_>(stack);
  return values[values.size() - n + i];
}
LAMELLA_LAZY IValue& peek(Stack& stack, size_t i, size_t n) {
  auto& values = detail::lazily<lazy_>(stack);
  return values[values.size() - n + i];
}
LAMELLA_LAZY ArrayRef<IValue> last(const Stack& stack, size_t n) {
  auto& values = detail::lazily<lazy_>(stack);
  return ArrayRef<IValue>(values.data() + (values.size() - n), n);
}
template <class... A>
void push(Stack& stack, A&&... values) {
  (detail::lazily<int{sizeof...(A)}>(stack).emplace_back(std::forward<A>(values)), ...);
}
template <class... A>
void push(Stack* stack, A&&... values) {
  push(*stack, std::forward<A>(values)...);
}

}  // namespace lamella
