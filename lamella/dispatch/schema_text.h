// The schema that a C++ signature stands for, as text. Signature strings (abi_types.h) have one
// letter for all types that travel as whole values; the text tells them apart, so that schemas are
// inferred from kernels with dictionaries, tuples, nested lists and objects of classes too.
#pragma once
#include <string>

#include "lamella/core/scalar_type.h"
#include "lamella/dispatch/signature.h"

namespace lamella {
template <class T>
class List;
template <class K, class V>
class Dict;
}  // namespace lamella

namespace lamella::abi {

// SchemaText<T>::get(): the type as a schema spells it; empty where no schema type is meant.
template <class T>
struct SchemaText {
  static std::string get() {
    if constexpr (is_tensor<T>) {
      return "Tensor";
    } else if constexpr (std::is_same_v<T, bool>) {
      return "bool";
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return "int";
    } else if constexpr (std::is_same_v<T, double>) {
      return "float";
    } else if constexpr (std::is_same_v<T, ScalarType>) {
      return "ScalarType";
    } else if constexpr (std::is_same_v<T, Layout>) {
      return "Layout";
    } else if constexpr (std::is_same_v<T, MemoryFormat>) {
      return "MemoryFormat";
    } else if constexpr (std::is_same_v<T, Device>) {
      return "Device";
    } else if constexpr (std::is_same_v<T, Scalar>) {
      return "Scalar";
    } else if constexpr (std::is_same_v<T, Generator>) {
      return "Generator";
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
      return "str";
    } else if constexpr (std::is_same_v<T, IValue>) {
      return "Any";
    } else {
      return "";
    }
  }
};
LAMELLA_LAZY std::string wrapped_text(const char* before, const std::string& inner,
                                      const char* behind) {
  return inner.empty() ? inner : str(before, inner, behind);
}
template <class T>
struct SchemaText<std::optional<T>> {
  static std::string get() { return wrapped_text("", SchemaText<T>::get(), "?"); }
};
template <class T>
struct SchemaText<ArrayRef<T>> {
  static std::string get() { return wrapped_text("", SchemaText<T>::get(), "[]"); }
};
template <class T>
struct SchemaText<OptionalArrayRef<T>> : SchemaText<std::optional<ArrayRef<T>>> {};
template <class T>
struct SchemaText<std::vector<T>> : SchemaText<ArrayRef<T>> {};
template <class T>
struct SchemaText<List<T>> : SchemaText<ArrayRef<T>> {};
template <class T, size_t N>
struct SchemaText<std::array<T, N>> {
  static std::string get() {
    return wrapped_text("", SchemaText<T>::get(), N == 0 ? "[]" : str('[', N, ']').c_str());
  }
};
// The texts of all types, with commas between; empty if one of them is.
template <class... T>
std::string joined_text() {
  std::string text;
  bool all = true;
  auto add = [&](const std::string& one) {
    all = all && !one.empty();
    if (!text.empty()) append(text, ", ");
    append(text, one);
  };
  (add(SchemaText<Decayed<T>>::get()), ...);
  return all ? text : "";
}
template <class K, class V>
struct SchemaText<Dict<K, V>> {
  static std::string get() { return wrapped_text("Dict(", joined_text<K, V>(), ")"); }
};
template <class... T>
struct SchemaText<std::tuple<T...>> {
  static std::string get() { return wrapped_text("(", joined_text<T...>(), ")"); }
};

// Lists of optional tensors have the letter of lists of tensors.
template <class T>
inline constexpr bool lists_optional_tensors = false;
template <class T>
inline constexpr bool lists_optional_tensors<ArrayRef<T>> = is_optional_tensor<T>;
template <class T>
inline constexpr bool lists_optional_tensors<std::vector<T>> = is_optional_tensor<T>;
template <class T>
inline constexpr bool lists_optional_tensors<List<T>> = is_optional_tensor<T>;

// SignatureText::get() writes the schema of a whole signature.
template <class Signature>
struct SignatureText;
template <class R, class... A>
struct SignatureText<R(A...)> {
  // Whether the text tells types apart that have one letter.
  static constexpr bool kTellsMore =
      Call<R(A...)>::travels_whole() || (lists_optional_tensors<Decayed<A>> || ...);
  // The names of the arguments are _0, _1, …
  static std::string get() { return get(nullptr); }
  // With what stands behind each type: a name, and a default if there is one.
  static std::string get(const std::string* names) {
    std::string text;
    append(text, '(');
    size_t index = 0;
    bool all = true;
    [[maybe_unused]] auto add = [&](const std::string& type) {
      all = all && !type.empty();
      if (index != 0) append(text, ", ");
      append(text, type);
      append(text, ' ');
      append(text, names != nullptr ? names[index] : str('_', index));
      ++index;
    };
    (add(SchemaText<Decayed<A>>::get()), ...);
    std::string result = result_text(static_cast<Decayed<R>*>(nullptr));
    if (!all || result.empty()) {
      detail::throw_printf(
          LAMELLA_ERROR,
          "def: a schema cannot be inferred from this function's types; give one, such as "
          "'name(Scalar[] values) -> Tensor'");
    }
    return str(text, ") -> ", result);
  }

 private:
  static std::string result_text(void*) { return "()"; }
  template <class T>
  static std::string result_text(T*) {
    return SchemaText<T>::get();
  }
  template <class... T>
  static std::string result_text(std::tuple<T...>*) {
    return str('(', joined_text<T...>(), ')');
  }
};

}  // namespace lamella::abi
