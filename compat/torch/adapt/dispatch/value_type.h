// What code that takes a value of any type asks of it, or of an argument: its type, and its entries
// whatever their kind. Declared by IValue and ArgumentInfo, and apart from them, since few kernels
// do.
#pragma once
#include <string>

#include "lamella/core/dict.h"
#include "lamella/core/intrusive_ptr.h"
#include "lamella/core/list.h"
#include "lamella/dispatch/operator_handle.h"
#include "lamella/dispatch/schema_text.h"

namespace lamella {

// A type by its text, as schemas spell it: "int[]", "Dict(str, int)". A library has one object for
// each text, so that addresses may be compared.
class ValueType {
 public:
  explicit ValueType(std::string text) : text_(std::move(text)) {}
  const std::string& str() const { return text_; }
  const std::string& repr_str() const { return text_; }
  const std::string& annotation_str() const { return text_; }
  bool operator==(const ValueType& other) const { return text_ == other.text_; }

 private:
  friend class ValueTypePtr;
  std::string text_;
  const ValueType* next_ = nullptr;
};

// Never null.
class ValueTypePtr {
 public:
  explicit ValueTypePtr(std::string text) : type_(the_one(std::move(text))) {}
  // The type of a C++ type, as a schema inferred from a kernel has it.
  template <class T>
  static ValueTypePtr of() {
    return ValueTypePtr(abi::SchemaText<T>::get());
  }
  const ValueType* get() const { return type_; }
  const ValueType* operator->() const { return type_; }
  const ValueType& operator*() const { return *type_; }
  bool operator==(const ValueTypePtr& other) const = default;

 private:
  // The types so far are a list that only grows. A thread that another one was faster than looks at
  // what that one has put in front.
  static const ValueType* the_one(std::string text) {
    static const ValueType* first = nullptr;
    const ValueType* seen = nullptr;
    ValueType* made = nullptr;
    const ValueType* head = __atomic_load_n(&first, __ATOMIC_ACQUIRE);
    while (true) {
      for (const ValueType* type = head; type != seen; type = type->next_) {
        if (type->text_ != (made != nullptr ? made->text_ : text)) continue;
        delete made;
        return type;
      }
      if (made == nullptr) made = new ValueType(std::move(text));
      made->next_ = seen = head;
      if (__atomic_compare_exchange_n(&first, &head, made, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
        return made;
      }
    }
  }
  const ValueType* type_;
};

// What is said behind an argument's type in brackets: that it is an alias, and whether it is
// written to.
class AliasOfArgument {
 public:
  explicit constexpr AliasOfArgument(bool is_write) : is_write_(is_write) {}
  constexpr bool isWrite() const { return is_write_; }

 private:
  bool is_write_;
};

// A string or a tuple out of a value, by an arrow as well: value.toString()->string().
class TextOfValue {
 public:
  explicit TextOfValue(std::string text) : text_(std::move(text)) {}
  const std::string& string() const { return text_; }
  const TextOfValue* operator->() const { return this; }
  const TextOfValue& operator*() const { return *this; }

 private:
  std::string text_;
};
// A pointer to a text or, made by default, to none, which is a string without memory.
template <class Null>
class intrusive_ptr<TextOfValue, Null> {
 public:
  intrusive_ptr() = default;
  intrusive_ptr(TextOfValue text) : text_(std::move(text)) {}  // NOLINT: implicit
  template <class... A>
  static intrusive_ptr make(A&&... arguments) {
    return TextOfValue(std::forward<A>(arguments)...);
  }
  IValue boxed() const {
    if (!text_.has_value()) return IValue::adopt({{0}, 0, LAMELLA_STRING, 0, 0});
    return text_->string();
  }

 private:
  std::optional<TextOfValue> text_;
};
class TupleOfValue {
 public:
  explicit TupleOfValue(IValue tuple) : tuple_(std::move(tuple)) {}
  ArrayRef<IValue> elements() const { return tuple_.elements(); }
  size_t size() const { return elements().size(); }
  const TupleOfValue* operator->() const { return this; }
  const TupleOfValue& operator*() const { return *this; }
  operator const IValue&() const { return tuple_; }  // NOLINT: as a pointer to PyTorch's does

  static TupleOfValue create(std::vector<IValue> entries) {
    return TupleOfValue(IValue::tuple(entries));
  }
  template <class... T>
    requires(std::is_convertible_v<T, IValue> && ...)
  static TupleOfValue create(T... entries) {
    return create(std::vector<IValue>{IValue(std::move(entries))...});
  }

 private:
  IValue tuple_;
};

namespace detail {
LAMELLA_HIDDEN inline constexpr AliasOfArgument kReadAlias(false), kWrittenAlias(true);

// The type that all entries of a list have; "Any" where they differ or there are none.
inline std::string type_of_entries(ArrayRef<IValue> entries, size_t begin, size_t step);

inline std::string type_text(const IValue& value) {
  switch (value.tag()) {
    case LAMELLA_NONE:
      return "NoneType";
    case LAMELLA_LIST:
      return type_of_entries(value.elements(), 0, 1) + "[]";
    case LAMELLA_DICT: {
      const ArrayRef<IValue> entries = value.elements();
      return str("Dict(", type_of_entries(entries, 0, 2), ", ", type_of_entries(entries, 1, 2),
                 ")");
    }
    case LAMELLA_TUPLE: {
      std::string text = "(";
      for (const IValue& entry : value.elements()) {
        text += (text.size() == 1 ? "" : ", ") + type_text(entry);
      }
      return text + ")";
    }
    case LAMELLA_OBJECT:
      if (value.isCustomClass()) {
        return class_of(value);
      }
      return value.tagKind();
    default:
      return value.tagKind();
  }
}
inline std::string type_of_entries(ArrayRef<IValue> entries, size_t begin, size_t step) {
  std::string text;
  for (size_t i = begin; i < entries.size(); i += step) {
    std::string other = type_text(entries[i]);
    if (!text.empty() && text != other) return "Any";
    text = std::move(other);
  }
  return text.empty() ? "Any" : text;
}
}  // namespace detail

// Whether both are of one type and equal: numbers and strings by value, tensors and objects if
// they are the same one, and what has entries entry by entry.
inline bool operator==(const IValue& a, const IValue& b) {
  if (a.tag() != b.tag()) return false;
  const lamella_value &one = a.value(), &other = b.value();
  switch (a.tag()) {
    case LAMELLA_NONE:
      return true;
    case LAMELLA_DOUBLE:
      return one.as.d == other.as.d;
    case LAMELLA_COMPLEX:
      return a.toComplexDouble() == b.toComplexDouble();
    case LAMELLA_STRING:
      return a.toStringView() == b.toStringView();
    case LAMELLA_INT:
    case LAMELLA_BOOL:
    case LAMELLA_DEVICE:
      return one.as.i == other.as.i;
    case LAMELLA_OBJECT:
      if (a.isCustomClass() && b.isCustomClass() &&
          __builtin_strcmp(detail::class_of(a), detail::class_of(b)) == 0) {
        return intrusive_ptr_target::of(a).equal_to(intrusive_ptr_target::of(b));
      }
      return one.as.pointer == other.as.pointer;
    case LAMELLA_TENSOR:
    case LAMELLA_GENERATOR:
      return one.as.pointer == other.as.pointer;
    case LAMELLA_TUPLE:
    case LAMELLA_DICT: {
      const ArrayRef<IValue> ones = a.elements(), others = b.elements();
      if (ones.size() != others.size()) return false;
      for (size_t i = 0; i < ones.size(); ++i) {
        if (!(ones[i] == others[i])) return false;
      }
      return true;
    }
    default:
      return a.toList().vec() == b.toList().vec();
  }
}

template <class T>
ValueTypePtr List<T>::elementType() const {
  return ValueTypePtr::of<T>();
}
template <class K, class V>
ValueTypePtr Dict<K, V>::keyType() const {
  return ValueTypePtr::of<K>();
}
template <class K, class V>
ValueTypePtr Dict<K, V>::valueType() const {
  return ValueTypePtr::of<V>();
}
template <int>
ValueTypePtr IValue::type() const {
  return ValueTypePtr(detail::type_text(*this));
}
template <int>
ValueTypePtr ArgumentInfo::type() const {
  return ValueTypePtr(type_text());
}
// Null where the argument is no alias.
template <int>
const AliasOfArgument* ArgumentInfo::alias_info() const {
  return !is_alias() ? nullptr : is_write() ? &detail::kWrittenAlias : &detail::kReadAlias;
}
template <int>
TextOfValue IValue::toString() const {
  return TextOfValue(toStringRef());
}
template <int>
TupleOfValue IValue::toTuple() const {
  expect(LAMELLA_TUPLE);
  return TupleOfValue(*this);
}
template <int>
TupleOfValue IValue::toTupleRef() const {
  return toTuple();
}
template <int>
std::vector<IValue> IValue::toListRef() const {
  return toList().vec();
}
template <int>
Dict<IValue, IValue> IValue::toGenericDict() const {
  expect(LAMELLA_DICT);
  const ArrayRef<IValue> entries = elements();
  Dict<IValue, IValue> dict;
  for (size_t i = 0; i + 1 < entries.size(); i += 2) dict.insert(entries[i], entries[i + 1]);
  return dict;
}

}  // namespace lamella
