// TypeMeta: the result of dtype(). It converts to ScalarType and has PyTorch's members about the
// C++ type of the elements.
#pragma once
#include "lamella/core/scalar_type.h"

namespace lamella {

class TypeMeta {
 public:
  constexpr TypeMeta() = default;  // Undefined
  constexpr explicit TypeMeta(ScalarType type) : type_(type) {}
  static constexpr TypeMeta fromScalarType(ScalarType type) { return TypeMeta(type); }
  template <class T>
  static constexpr TypeMeta Make() {
    return TypeMeta(Id<T>());
  }
  template <class T>
  static constexpr ScalarType Id() {
    return CppTypeToScalarType<T>::value;
  }
  template <class T>
  static constexpr size_t ItemSize() {
    return sizeof(T);
  }

  constexpr operator ScalarType() const { return type_; }  // NOLINT: implicit
  constexpr ScalarType toScalarType() const { return type_; }
  constexpr bool isScalarType() const { return is_supported(type_); }
  constexpr bool isScalarType(ScalarType type) const { return type_ == type; }
  // Equal for equal types; ScalarTypes are identifiers enough.
  constexpr ScalarType id() const { return type_; }
  template <class T>
  constexpr bool Match() const {
    return type_ == CppTypeToScalarType<T>::value;
  }
  // Bytes of one element; 0 for Undefined.
  constexpr size_t itemsize() const { return element_size(type_); }
  // The C++ type: "float", "long int", "c10::Half", ….
  LAMELLA_LAZY constexpr std::string_view name() const {
    switch (type_) {
#define LAMELLA_SCALAR_TYPE(cpp, name, number, text, ...) \
  case ScalarType::name:                                  \
    return cpp_name<cpp>("c10::" #name);
#include "lamella/core/scalar_type.def"
      case ScalarType::Undefined:
        return "nullptr (uninitialized)";
      default:
        return toString(type_);
    }
  }

  constexpr bool operator==(const TypeMeta&) const = default;
  friend constexpr bool operator==(TypeMeta a, ScalarType b) { return a.type_ == b; }

 private:
  // The compiler's name of the type, with PyTorch's namespace before class names.
  template <class T>
  static constexpr std::string_view cpp_name(const char* name) {
    if constexpr (std::is_arithmetic_v<T>) {
      // "… [with T = short int; …]"
      std::string_view text = __PRETTY_FUNCTION__;
      text.remove_prefix(text.find("T = ") + 4);
      return text.substr(0, text.find_first_of(";]"));
    } else if constexpr (is_complex_type_v<T>) {
      return sizeof(T) == 4   ? "c10::complex<c10::Half>"
             : sizeof(T) == 8 ? "c10::complex<float>"
                              : "c10::complex<double>";
    } else {
      return name;
    }
  }

  ScalarType type_ = ScalarType::Undefined;
};
inline void append(std::string& out, TypeMeta type) { append(out, type.toScalarType()); }

}  // namespace lamella
