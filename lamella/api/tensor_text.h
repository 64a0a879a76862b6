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
template <detail::TextStream Stream, class T>
  requires std::is_base_of_v<Tensor, T>
Stream& operator<<(Stream& out, const T& tensor) {
  return detail::stream(out, static_cast<const Tensor&>(tensor));
}

}  // namespace lamella
