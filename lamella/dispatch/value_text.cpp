// Values as text.
#include "lamella/dispatch/value_text.h"

#include <charconv>

#include "lamella/core/ivalue.h"
#include "lamella/schema/enums.h"
#include "lamella/schema/printer.h"

namespace lamella {
namespace {

// The shortest text that reads back as the same number and cannot be read as an integer.
template <class T>
std::string real_text(T number) {
  char text[32];
  std::string made(text, std::to_chars(text, text + sizeof(text), number).ptr);
  return made.find_first_of(".eni") == std::string::npos ? made + ".0" : made;
}
template <class T>
std::string complex_text(const void* number) {
  auto* parts = static_cast<const T*>(number);
  std::string second = real_text(parts[1]);
  return real_text(parts[0]) + (second[0] == '-' ? "" : "+") + second + "j";
}
std::string truth_text(bool truth) { return truth ? "True" : "False"; }
std::string integer_text(TypeKind kind, int64_t number) {
  // A reduction's words are those of a default; a call gives its number.
  if (kind != TypeKind::kInt) {
    for (std::string_view word : enum_words(kind)) {
      if (enum_word_value(kind, word) == number) return std::string(word);
    }
  }
  return std::to_string(number);
}
template <class F>
std::string list_text(uint32_t count, F&& item) {
  std::string text = "[";
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) text += ", ";
    text += item(i);
  }
  return text + "]";
}

}  // namespace

std::string value_text(const lamella_value& value, SchemaType type, ValueWords& words) {
  type = type.without_optional();
  switch (value.tag) {
    case LAMELLA_NONE:
      return "None";
    case LAMELLA_TENSOR:
      return words.tensor(value.as.tensor);
    case LAMELLA_INT:
      return integer_text(type.kind(), value.as.i);
    case LAMELLA_DOUBLE:
      return real_text(value.as.d);
    case LAMELLA_BOOL:
      return truth_text(value.as.i != 0);
    case LAMELLA_COMPLEX:
      return complex_text<double>(value.as.pointer);
    case LAMELLA_STRING:
      return detail::quote_string({static_cast<const char*>(value.as.pointer), value.size});
    case LAMELLA_DEVICE:
      return IValue::unpack_device(value.as.i).str();
    case LAMELLA_INT_LIST:
      return list_text(value.size, [&](uint32_t i) {
        return integer_text(type.element().kind(),
                            static_cast<const int64_t*>(value.as.pointer)[i]);
      });
    case LAMELLA_DOUBLE_LIST:
      return list_text(value.size, [&](uint32_t i) {
        return real_text(static_cast<const double*>(value.as.pointer)[i]);
      });
    case LAMELLA_BOOL_LIST:
      return list_text(value.size, [&](uint32_t i) {
        return truth_text(static_cast<const uint8_t*>(value.as.pointer)[i] != 0);
      });
    case LAMELLA_LIST:
      return list_text(value.size, [&](uint32_t i) {
        return value_text(static_cast<const lamella_value*>(value.as.pointer)[i], type.element(),
                          words);
      });
    default:
      return words.other(value, type);
  }
}

std::optional<std::string> number_text(const TensorBase& tensor) {
  const void* data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case ScalarType::Double:
      return real_text(*static_cast<const double*>(data));
    case ScalarType::Float:
      return real_text(*static_cast<const float*>(data));
    case ScalarType::Long:
      return std::to_string(*static_cast<const int64_t*>(data));
    case ScalarType::Bool:
      return truth_text(*static_cast<const bool*>(data));
    case ScalarType::ComplexDouble:
      return complex_text<double>(data);
    case ScalarType::ComplexFloat:
      return complex_text<float>(data);
    default:
      return std::nullopt;
  }
}

}  // namespace lamella
