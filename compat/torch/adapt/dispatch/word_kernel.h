// Kernels that take all arguments as 64-bit words and store their returns in the same array:
// PyTorch's stable calling convention. A word holds a number's bits, an owned tensor, or the
// address of a heap object (for optionals, lists and strings); reading a word takes ownership.
#pragma once
#include "lamella/dispatch/library.h"
#include "lamella/dispatch/whole_values.h"

namespace lamella {

using Word = uint64_t;
// The stack of a call: arguments in, returns out.
using WordKernel = void(Word* stack, uint64_t arguments, uint64_t returns);

// The words of values, and back.
template <class T>
struct WordOf {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(Word));
  static Word to(const T& value) {
    Word word = 0;
    __builtin_memcpy(&word, &value, sizeof(T));
    return word;
  }
  static T from(Word word) {
    T value;
    __builtin_memcpy(static_cast<void*>(&value), &word, sizeof(T));
    return value;
  }
};
template <class T>
  requires std::is_base_of_v<TensorBase, T>
struct WordOf<T> {
  static Word to(const T& value) {
    return reinterpret_cast<Word>(TensorBase(value).unsafe_release());
  }
  static T from(Word word) { return T(TensorBase::adopt(reinterpret_cast<lamella_tensor*>(word))); }
};
template <>
struct WordOf<Device> {
  static Word to(Device device) { return static_cast<Word>(IValue::pack_device(device)); }
  static Device from(Word word) { return IValue::unpack_device(static_cast<int64_t>(word)); }
};
// What lies on the heap.
template <class T>
struct HeapWord {
  static Word to(T value) { return reinterpret_cast<Word>(new T(std::move(value))); }
  static T from(Word word) {
    auto* held = reinterpret_cast<T*>(word);
    T value = std::move(*held);
    delete held;
    return value;
  }
};
template <>
struct WordOf<std::string> : HeapWord<std::string> {};
template <>
struct WordOf<std::nullopt_t> {
  static Word to(std::nullopt_t) { return 0; }
};
template <class T>
struct WordOf<std::optional<T>> {
  static Word to(const std::optional<T>& value) {
    return value ? HeapWord<Word>::to(WordOf<T>::to(*value)) : 0;
  }
  static std::optional<T> from(Word word) {
    if (word == 0) return std::nullopt;
    return WordOf<T>::from(HeapWord<Word>::from(word));
  }
};
template <class T>
struct WordOf<std::vector<T>> {
  static Word to(const std::vector<T>& list) {
    std::vector<Word> words;
    for (const T& entry : list) words.push_back(WordOf<T>::to(entry));
    return HeapWord<std::vector<Word>>::to(std::move(words));
  }
  static std::vector<T> from(Word word) {
    std::vector<T> list;
    for (Word entry : HeapWord<std::vector<Word>>::from(word)) {
      list.push_back(WordOf<T>::from(entry));
    }
    return list;
  }
};

namespace detail {
// f.operator()<T>() for the type of the words of a schema's type without annotations: "int[]".
template <class F>
auto visit_stable(std::string_view type, F&& f) {
  if (type == "Tensor") return f.template operator()<TensorBase>();
  if (type == "float") return f.template operator()<double>();
  if (type == "bool") return f.template operator()<bool>();
  if (type == "Device") return f.template operator()<Device>();
  if (type == "str") return f.template operator()<std::string>();
  if (type == "Tensor[]") return f.template operator()<std::vector<TensorBase>>();
  if (type == "float[]") return f.template operator()<std::vector<double>>();
  if (type == "int[]" || type == "SymInt[]") return f.template operator()<std::vector<int64_t>>();
  if (type == "int" || type == "SymInt" || type == "ScalarType" || type == "Layout" ||
      type == "MemoryFormat") {
    return f.template operator()<int64_t>();
  }
  throw TypeError(str("expected a type that has a stable form, got ", type));
}
LAMELLA_LAZY inline Word word_of_value(const IValue& value, std::string_view type) {
  if (type.ends_with('?')) {
    if (value.isNone()) return 0;
    return HeapWord<Word>::to(word_of_value(value, type.substr(0, type.size() - 1)));
  }
  return visit_stable(type,
                      [&]<class T>() { return WordOf<T>::to(abi::FromValue<T>::get(value)); });
}
LAMELLA_LAZY inline IValue value_of_word(Word word, std::string_view type) {
  if (type.ends_with('?')) {
    if (word == 0) return IValue();
    return value_of_word(HeapWord<Word>::from(word), type.substr(0, type.size() - 1));
  }
  return visit_stable(type, [&]<class T>() { return IValue(WordOf<T>::from(word)); });
}
// The printed type of an argument (kind 0) or return (1), with its aliases left out: "Tensor(a!)?"
// is "Tensor?".
LAMELLA_LAZY inline std::string bare_type(const lamella_operator* op, int32_t kind, uint32_t i) {
  lamella_argument_info info;
  check(lamella_operator_argument(op, kind, i, &info));
  std::string type = info.type;
  size_t open = type.find('('), close = type.find(')');
  return open == std::string::npos ? type : type.erase(open, close - open + 1);
}
}  // namespace detail

// A boxed kernel that calls one of words.
inline CppFunction word_function(WordKernel* kernel) {
  return CppFunction([kernel](const OperatorHandle& op, Stack* stack) {
    const lamella_operator* entry = op.impl();
    uint32_t arguments = entry->argument_count, returns = entry->return_count;
    std::vector<Word> words(arguments > returns ? arguments : returns);
    for (uint32_t i = 0; i < arguments; ++i) {
      words[i] = detail::word_of_value((*stack)[i], detail::bare_type(entry, 0, i));
    }
    kernel(words.data(), arguments, returns);
    stack->clear();
    for (uint32_t i = 0; i < returns; ++i) {
      stack->push_back(detail::value_of_word(words[i], detail::bare_type(entry, 1, i)));
    }
  });
}

// Calls an operator with words: arguments in, returns out.
LAMELLA_LAZY inline void call_words(const char* name, const char* overload, Word* stack) {
  OperatorHandle op = Dispatcher::singleton().findSchemaOrThrow(name, overload);
  const lamella_operator* entry = op.impl();
  Stack values;
  for (uint32_t i = 0; i < entry->argument_count; ++i) {
    values.push_back(detail::value_of_word(stack[i], detail::bare_type(entry, 0, i)));
  }
  op.callBoxed(&values);
  for (uint32_t i = 0; i < entry->return_count; ++i) {
    stack[i] = detail::word_of_value(values[i], detail::bare_type(entry, 1, i));
  }
}

}  // namespace lamella
