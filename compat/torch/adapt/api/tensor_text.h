// Tensors as text for C++, in the form that PyTorch's programs print: the elements in columns, then
// [ CPUFloatType{2,3} ].
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "lamella/api/functions.h"
#include "lamella/core/text_stream.h"

namespace lamella {
namespace detail {

// How the elements of a tensor, or of one of its matrices, are printed: their common factor, the
// field width, and the printf format.
struct NumberFormat {
  double scale = 1;
  int width = 1;
  const char* form = "%*g";
};

LAMELLA_LAZY NumberFormat number_format(ArrayRef<double> values) {
  bool are_whole = true;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    are_whole = are_whole && value == std::ceil(value);
    least = std::min(least, std::abs(value));
    most = std::max(most, std::abs(value));
  }
  auto digits = [](double size) {
    return size == 0 || std::isinf(size) ? 1 : static_cast<int>(std::floor(std::log10(size))) + 1;
  };
  const int low = digits(least), high = digits(most);
  if (are_whole) {
    if (high > 9) return {1, 11, "%*.4e"};
    return {1, high + 1, "%*g"};
  }
  if (high - low > 4) return {1, std::abs(high) > 99 || std::abs(low) > 99 ? 12 : 11, "%*.4e"};
  if (high > 5 || high < 0) return {std::pow(10.0, high - 1), 7, "%*.4f"};
  return {1, high == 0 ? 7 : high + 6, "%*.4f"};
}
LAMELLA_LAZY void append_number(std::string& out, const NumberFormat& how, double value) {
  char buffer[64];
  int n = __builtin_snprintf(buffer, sizeof(buffer), how.form, how.width, value / how.scale);
  if (n > 0) out.append(buffer, static_cast<size_t>(n));
}
// Appends the shortest text that reads back as the same number, without a point if it is whole.
LAMELLA_LAZY void append_exactly(std::string& out, double value) {
  char buffer[40];
  const bool is_whole = std::abs(value) < 1e16 && value == std::floor(value);
  int n = __builtin_snprintf(buffer, sizeof(buffer), "%.0f", value);
  for (int digits = 1; !is_whole && digits <= 17; ++digits) {
    n = __builtin_snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
    if (std::isnan(value) || std::strtod(buffer, nullptr) == value) break;
  }
  if (n > 0) out.append(buffer, static_cast<size_t>(n));
}
LAMELLA_LAZY void append_scale(std::string& out, const NumberFormat& how, const char* indent) {
  if (how.scale == 1) return;
  append(out, how.scale);
  out.append(" *\n").append(indent);
}
// `values` has rows * columns entries; as many columns side by side as 80 characters take.
LAMELLA_LAZY void append_matrix(std::string& out, ArrayRef<double> values, size_t rows,
                                size_t columns, const char* indent) {
  const NumberFormat how = number_format(values);
  const size_t room = 80 - std::string_view(indent).size();
  const size_t at_once = std::max<size_t>(1, room / (static_cast<size_t>(how.width) + 1));
  for (size_t first = 0; first < columns; first += at_once) {
    const size_t end = std::min(first + at_once, columns);
    if (at_once < columns) {
      if (first != 0) out += '\n';
      out += str("Columns ", first + 1, " to ", end, indent);
    }
    append_scale(out, how, indent);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t column = first; column < end; ++column) {
        append_number(out, how, values[row * columns + column]);
        out += column + 1 == end ? '\n' : ' ';
      }
      if (row + 1 != rows) out.append(indent).append(how.scale == 1 ? "" : " ");
    }
  }
}
LAMELLA_LAZY void append_elements(std::string& out, const Tensor& tensor) {
  Tensor values = tensor.detach().cpu().to(kDouble).contiguous();
  ArrayRef<double> all(values.const_data_ptr<double>(), static_cast<size_t>(values.numel()));
  auto size = [&](int64_t dim) { return static_cast<size_t>(values.size(dim)); };
  if (values.dim() == 0) {
    append_exactly(out, all[0]);
    out += '\n';
  } else if (all.empty()) {
    return;
  } else if (values.dim() == 1) {
    const NumberFormat how = number_format(all);
    append_scale(out, how, "");
    for (double value : all) {
      append_number(out, how, value);
      out += '\n';
    }
  } else if (values.dim() == 2) {
    append_matrix(out, all, size(0), size(1), "");
  } else {
    const size_t rows = size(-2), columns = size(-1);
    for (size_t at = 0; at < all.size(); at += rows * columns) {
      if (at != 0) out += '\n';
      std::string place;
      size_t rest = at / (rows * columns);
      for (int64_t dim = values.dim() - 3; dim >= 0; --dim) {
        place = str(rest % size(dim) + 1, ",", place);
        rest /= size(dim);
      }
      out += str("(", place, ".,.) = \n");
      append_matrix(out, all.slice(at, rows * columns), rows, columns, " ");
    }
  }
}

}  // namespace detail

LAMELLA_LAZY void append(std::string& out, const Tensor& tensor) {
  if (!tensor.defined()) {
    out += "[ Tensor (undefined) ]";
    return;
  }
  if (tensor.is_meta()) {
  } else if (tensor.is_complex()) {  // printed as a list of complex numbers, without columns
    Tensor values = tensor.detach().cpu().reshape({-1});
    for (int64_t i = 0; i < values.numel(); ++i) {
      append(out, values.select(0, i).item());
      out += '\n';
    }
  } else {
    detail::append_elements(out, tensor);
  }
  out += "[ " + tensor.toString();
  const char* before = "{";
  for (int64_t size : tensor.sizes()) {
    out += before;
    append(out, size);
    before = ",";
  }
  out += tensor.dim() == 0 ? "{} ]" : "} ]";
}
// A boxed value: text as it is, whole floating-point numbers as "2.".
LAMELLA_LAZY void append(std::string& out, const IValue& value) {
  auto listed = [&](const char* open, ArrayRef<IValue> entries, const char* close) {
    out += open;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) out += value.isGenericDict() && i % 2 == 1 ? ": " : ", ";
      append(out, entries[i]);
    }
    out += close;
  };
  const auto real = [&](double number) {
    char buffer[40];
    const bool is_whole = std::abs(number) < 1e10 && number == std::floor(number);
    out.append(buffer, static_cast<size_t>(__builtin_snprintf(
                           buffer, sizeof(buffer), is_whole ? "%.0f." : "%.17g", number)));
  };
  switch (value.tag()) {
    case LAMELLA_TENSOR:
      return append(out, value.toTensor());
    case LAMELLA_DOUBLE:
      return real(value.toDouble());
    case LAMELLA_COMPLEX: {
      const complex<double> number = value.toComplexDouble();
      real(number.real());
      if (!(number.imag() < 0)) out += '+';
      real(number.imag());
      out += 'j';
      return;
    }
    case LAMELLA_INT:
      return append(out, value.toInt());
    case LAMELLA_BOOL:
      out += value.toBool() ? "True" : "False";
      return;
    case LAMELLA_STRING:
      out.append(value.toStringView());
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
      return listed("(", value.elements(), value.elements().size() == 1 ? ",)" : ")");
    case LAMELLA_DICT:
      return listed("{", value.elements(), "}");
    default:
      out += value.tagKind();
  }
}
template <detail::TextStream Stream, class T>
  requires std::is_same_v<IValue, T>
Stream& operator<<(Stream& out, const T& value) {
  return detail::stream(out, value);
}
// Writes a tensor to the standard output.
LAMELLA_LAZY void print(const Tensor& tensor) {
  std::string text;
  append(text, tensor);
  std::fwrite(text.data(), 1, text.size(), stdout);
}
template <detail::TextStream Stream, class T>
  requires std::is_base_of_v<Tensor, T>
Stream& operator<<(Stream& out, const T& tensor) {
  return detail::stream(out, static_cast<const Tensor&>(tensor));
}

// "CPUFloatType".
template <detail::TextStream Stream, std::derived_from<TensorKind> T>
Stream& operator<<(Stream& out, const T& kind) {
  return detail::stream(out, kind.toString());
}

// Prints all options, and marks those that are defaults.
template <detail::TextStream Stream, class T>
  requires std::is_same_v<TensorOptions, T>
Stream& operator<<(Stream& out, const T& options) {
  auto or_default = [](bool is_set) { return is_set ? "" : " (default)"; };
  std::string text =
      str("TensorOptions(dtype=", options.dtype().name(), or_default(options.has_dtype()),
          ", device=", options.device(), or_default(options.has_device()),
          ", layout=", options.layout(), or_default(options.has_layout()),
          ", requires_grad=", options.requires_grad(), or_default(options.has_requires_grad()),
          ", pinned_memory=", options.pinned_memory(), or_default(options.has_pinned_memory()),
          ", memory_format=");
  if (options.has_memory_format()) {
    append(text, *options.memory_format_opt());
  } else {
    text += "(nullopt)";
  }
  return detail::stream(out, text + ")");
}

}  // namespace lamella
