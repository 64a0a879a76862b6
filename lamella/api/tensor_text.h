// Tensors as text for C++: dtype, sizes and the elements, summarised where they are many.
#pragma once
#include "lamella/api/functions.h"
#include "lamella/core/text_stream.h"

namespace lamella {
namespace detail {

// Elements at each end of a dimension that is too long to be shown as a whole.
inline constexpr int64_t kShownAtEnds = 3;
inline constexpr int64_t kShownWhole = 1000;

LAMELLA_LAZY void append_elements(std::string& out, const Tensor& values, bool whole) {
  if (values.dim() == 0) {
    append(out, values.item());
    return;
  }
  out += '[';
  int64_t size = values.size(0);
  for (int64_t i = 0; i < size; ++i) {
    if (i != 0) out += values.dim() == 1 ? ", " : ",\n";
    if (!whole && size > 2 * kShownAtEnds && i == kShownAtEnds) {
      out += values.dim() == 1 ? "..., " : "...,\n";
      i = size - kShownAtEnds;
    }
    append_elements(out, values.select(0, i), whole);
  }
  out += ']';
}

}  // namespace detail

LAMELLA_LAZY void append(std::string& out, const Tensor& tensor) {
  if (!tensor.defined()) {
    out += "[ Tensor (undefined) ]";
    return;
  }
  if (!tensor.is_meta()) {
    detail::append_elements(out, tensor.detach().cpu(), tensor.numel() <= detail::kShownWhole);
    out += '\n';
  }
  out += str("[ ", tensor.device(), " ", tensor.scalar_type(), tensor.sizes(), " ]");
}
// A boxed value as Python would show it.
LAMELLA_LAZY void append(std::string& out, const IValue& value) {
  auto listed = [&](const char* open, ArrayRef<IValue> entries, const char* close) {
    out += open;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) out += value.isGenericDict() && i % 2 == 1 ? ": " : ", ";
      append(out, entries[i]);
    }
    out += close;
  };
  switch (value.tag()) {
    case LAMELLA_TENSOR:
      return append(out, value.toTensor());
    case LAMELLA_INT:
    case LAMELLA_DOUBLE:
    case LAMELLA_COMPLEX:
      return append(out, value.toScalar());
    case LAMELLA_BOOL:
      out += value.toBool() ? "True" : "False";
      return;
    case LAMELLA_STRING:
      out.append("\"").append(value.toStringView()).append("\"");
      return;
    case LAMELLA_DEVICE:
      return append(out, value.toDevice());
    case LAMELLA_INT_LIST:
      return append(out, value.toIntList());
    case LAMELLA_DOUBLE_LIST:
      return append(out, value.toDoubleList());
    case LAMELLA_TENSOR_LIST:
      out += '[';
      for (const Tensor& entry : value.toTensorList()) {
        if (out.back() != '[') out += ", ";
        append(out, entry);
      }
      out += ']';
      return;
    case LAMELLA_LIST:
      return listed("[", value.elements(), "]");
    case LAMELLA_TUPLE:
      return listed("(", value.elements(), ")");
    case LAMELLA_DICT:
      return listed("{", value.elements(), "}");
    default:
      out += value.tagKind();
  }
}
template <detail::TextStream Stream, class T>
  requires std::is_same_v<IValue, T>
Stream& operator<<(Stream& out, const T& value) {
  std::string text;
  append(text, value);
  out.write(text.data(), static_cast<std::ptrdiff_t>(text.size()));
  return out;
}
template <detail::TextStream Stream, class T>
  requires std::is_base_of_v<Tensor, T>
Stream& operator<<(Stream& out, const T& tensor) {
  return detail::stream(out, static_cast<const Tensor&>(tensor));
}

}  // namespace lamella
