// operator<< into streams for the types that have append(); see core/error.h. Templates over the
// stream, so that no header of streams is needed here. A dtype is written as PyTorch writes it in
// C++, "Float"; in messages it has its Python name.
#pragma once
#include "lamella/core/list.h"
#include "lamella/core/scalar.h"

namespace lamella {

namespace detail {
template <class Stream>
concept TextStream = requires(Stream& out, const std::string& text) { out.write(text.data(), 1); };
template <class T>
concept Printed =
    std::is_same_v<T, ScalarType> || std::is_same_v<T, DeviceType> || std::is_same_v<T, Device> ||
    std::is_same_v<T, Layout> || std::is_same_v<T, MemoryFormat> || std::is_same_v<T, Scalar>;
template <class Stream, class T>
Stream& stream(Stream& out, const T& value) {
  std::string text;
  if constexpr (std::is_same_v<T, ScalarType>) {
    text = toString(value);
  } else {
    text = str(value);
  }
  out.write(text.data(), static_cast<std::ptrdiff_t>(text.size()));
  return out;
}
}  // namespace detail

template <detail::TextStream Stream, detail::Printed T>
Stream& operator<<(Stream& out, const T& value) {
  return detail::stream(out, value);
}
// (1,2), as the standard library writes std::complex.
template <detail::TextStream Stream, class T>
Stream& operator<<(Stream& out, const complex<T>& z) {
  return detail::stream(out, str("(", z.real(), ",", z.imag(), ")"));
}
template <detail::TextStream Stream, std::same_as<TypeMeta> T>
Stream& operator<<(Stream& out, T type) {
  return detail::stream(out, type.name());
}
template <detail::TextStream Stream, class T>
Stream& operator<<(Stream& out, ArrayRef<T> list) {
  return detail::stream(out, list);
}
template <detail::TextStream Stream, class T>
Stream& operator<<(Stream& out, const List<T>& list) {
  return detail::stream(out, list.vec());
}

}  // namespace lamella
