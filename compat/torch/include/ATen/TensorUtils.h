// at::TensorArg and checks for arguments of kernels: checkDim, checkAllSameType, ….
#pragma once
#include <ATen/ATen.h>
#include <c10/core/Backend.h>

#include <initializer_list>

#define TORCH_CHECK_TENSOR_ALL(condition, ...) \
  TORCH_CHECK((condition).all().item<bool>() __VA_OPT__(, ) __VA_ARGS__)

namespace at {

// The name of the operator, for error messages.
using CheckedFrom = const char*;

// A tensor with its name and its position in the argument list, for error messages.
struct TensorArg {
  TensorArg(Tensor tensor, const char* name, int position)
      : tensor(std::move(tensor)), name(name), pos(position) {}
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
  Tensor tensor;
  const char* name;
  int pos;
};
using TensorGeometryArg = TensorArg;

namespace detail {
// Checks that a property is the same for all tensors.
template <class Fact>
void check_same(CheckedFrom op, ArrayRef<TensorArg> tensors, const char* what, const Fact& fact) {
  const TensorArg* first = nullptr;
  for (const TensorArg& arg : tensors) {
    if (!arg->defined()) continue;
    if (first == nullptr) first = &arg;
    LAMELLA_CHECK(fact(*arg) == fact(**first), op, ": expected '", arg.name, "' to have the ", what,
                  " of '", first->name, "', ", fact(**first), ", got ", fact(*arg));
  }
}
}  // namespace detail

LAMELLA_LAZY void checkDim(CheckedFrom op, const TensorArg& arg, int64_t dim) {
  LAMELLA_CHECK(arg->dim() == dim, op, ": expected '", arg.name, "' to have ", dim,
                " dimensions, got ", arg->dim());
}
LAMELLA_LAZY void checkDim(CheckedFrom op, const Tensor& tensor, const char* name, int position,
                           int64_t dim) {
  checkDim(op, TensorArg(tensor, name, position), dim);
}
// The number of dimensions must be in [from, to).
LAMELLA_LAZY void checkDimRange(CheckedFrom op, const TensorArg& arg, int64_t from, int64_t to) {
  LAMELLA_CHECK(arg->dim() >= from && arg->dim() < to, op, ": expected '", arg.name,
                "' to have from ", from, " to ", to - 1, " dimensions, got ", arg->dim());
}
LAMELLA_LAZY void checkContiguous(CheckedFrom op, const TensorArg& arg) {
  LAMELLA_CHECK(arg->is_contiguous(), op, ": expected '", arg.name, "' to be contiguous");
}
LAMELLA_LAZY void checkAllContiguous(CheckedFrom op, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& arg : tensors) {
    if (arg->defined()) checkContiguous(op, arg);
  }
}
LAMELLA_LAZY void checkSize(CheckedFrom op, const TensorArg& arg, IntArrayRef sizes) {
  LAMELLA_CHECK(arg->sizes() == sizes, op, ": expected '", arg.name, "' to have sizes ", sizes,
                ", got ", arg->sizes());
}
LAMELLA_LAZY void checkSize(CheckedFrom op, const TensorArg& arg, int64_t dim, int64_t size) {
  LAMELLA_CHECK(arg->size(dim) == size, op, ": expected '", arg.name, "' to have size ", size,
                " at dimension ", dim, ", got ", arg->size(dim));
}
LAMELLA_LAZY void checkNumel(CheckedFrom op, const TensorArg& arg, int64_t numel) {
  LAMELLA_CHECK(arg->numel() == numel, op, ": expected '", arg.name, "' to have ", numel,
                " elements, got ", arg->numel());
}
LAMELLA_LAZY void checkScalarType(CheckedFrom op, const TensorArg& arg, ScalarType type) {
  LAMELLA_CHECK(arg->scalar_type() == type, op, ": expected '", arg.name, "' to be of ", type,
                ", got ", arg->scalar_type());
}
LAMELLA_LAZY void checkScalarTypes(CheckedFrom op, const TensorArg& arg,
                                   ArrayRef<ScalarType> types) {
  for (ScalarType type : types) {
    if (arg->scalar_type() == type) return;
  }
  LAMELLA_CHECK(false, op, ": expected '", arg.name, "' to be of one of ", types, ", got ",
                arg->scalar_type());
}
LAMELLA_LAZY void checkDefined(CheckedFrom op, const TensorArg& arg) {
  LAMELLA_CHECK(arg->defined(), op, ": expected '", arg.name, "' to be defined");
}
LAMELLA_LAZY void checkAllDefined(CheckedFrom op, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& arg : tensors) checkDefined(op, arg);
}
// Defines checkAllSame… of a list and checkSame… of two tensors.
#define LAMELLA_CHECK_SAME(What, text, fact)                                                  \
  LAMELLA_LAZY void checkAllSame##What(CheckedFrom op, ArrayRef<TensorArg> tensors) {         \
    detail::check_same(op, tensors, text, [](const Tensor& t) { return t.fact(); });          \
  }                                                                                           \
  LAMELLA_LAZY void checkSame##What(CheckedFrom op, const TensorArg& a, const TensorArg& b) { \
    checkAllSame##What(op, {b, a});                                                           \
  }
LAMELLA_CHECK_SAME(Type, "dtype", scalar_type)
LAMELLA_CHECK_SAME(Size, "sizes", sizes)
LAMELLA_CHECK_SAME(Numel, "number of elements", numel)
LAMELLA_CHECK_SAME(Dim, "number of dimensions", dim)
LAMELLA_CHECK_SAME(GPU, "device", device)
#undef LAMELLA_CHECK_SAME
LAMELLA_LAZY void checkDeviceType(CheckedFrom op, TensorList tensors, DeviceType type) {
  for (const Tensor& tensor : tensors) {
    LAMELLA_CHECK(!tensor.defined() || tensor.device().type() == type, op, ": expected tensors on ",
                  type, ", got one on ", tensor.device());
  }
}
LAMELLA_LAZY void checkBackend(CheckedFrom op, TensorList tensors, Backend backend) {
  checkDeviceType(op, tensors, backendToDeviceType(backend));
}
LAMELLA_LAZY void checkLayout(CheckedFrom op, TensorList tensors, Layout layout) {
  for (const Tensor& tensor : tensors) {
    LAMELLA_CHECK(!tensor.defined() || tensor.layout() == layout, op, ": expected tensors of ",
                  layout, ", got one of ", tensor.layout());
  }
}
LAMELLA_LAZY void check_dim_size(const Tensor& tensor, int64_t dim, int64_t dim_size,
                                 int64_t size) {
  LAMELLA_CHECK(tensor.dim() == dim && tensor.size(dim_size) == size, "expected a tensor of ", dim,
                " dimensions with size ", size, " at dimension ", dim_size, ", got sizes ",
                tensor.sizes());
}
LAMELLA_LAZY void* maybe_data_ptr(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr() : nullptr;
}
LAMELLA_LAZY void* maybe_data_ptr(const TensorArg& arg) { return maybe_data_ptr(*arg); }

}  // namespace at
