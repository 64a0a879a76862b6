// at::add, at::empty and all other operators as functions.
#pragma once
#include <ATen/core/Tensor.h>

#include "lamella/api/from_blob.h"
#include "lamella/api/tensor_of.h"
#include "lamella/core/for_each.h"
#include "lamella_more/functions.h"

// The less common operators; their library is loaded on the first call of one of them.
namespace lamella::redispatch {}
namespace at {
using namespace ::aten;
namespace redispatch {
using namespace lamella::redispatch;
using namespace ::aten::redispatch;
}  // namespace redispatch
namespace _ops {
using namespace ::aten::ops;
}
}  // namespace at

namespace at {
// Properties of tensors, also as functions. c10::is_complex is a class template over types.
using lamella::is_complex;
using lamella::is_floating_point;
inline bool is_complex(const Tensor& tensor) { return tensor.is_complex(); }
inline bool is_floating_point(const Tensor& tensor) { return tensor.is_floating_point(); }
inline bool is_signed(const Tensor& tensor) { return tensor.is_signed(); }

// Overloads of factories with a parameter for dimension names, which Lamella does not support.
#define LAMELLA_UNNAMED(name)                                                                 \
  using lamella::name;                                                                        \
  LAMELLA_LAZY Tensor name(IntArrayRef size, std::nullopt_t, std::optional<ScalarType> dtype, \
                           std::optional<Layout> layout, std::optional<Device> device,        \
                           std::optional<bool> pin_memory) {                                  \
    return lamella::name(size, dtype, layout, device, pin_memory);                            \
  }
LAMELLA_FOR_EACH(LAMELLA_UNNAMED, zeros, ones, rand, randn)
#undef LAMELLA_UNNAMED

// An int is a dimension, although it also converts to the bool `unbiased`.
#define LAMELLA_OVER_DIMENSION(name)                      \
  using lamella::name;                                    \
  LAMELLA_LAZY auto name(const Tensor& self, int dim) {   \
    return lamella::name(self, OptionalIntArrayRef(dim)); \
  }
LAMELLA_OVER_DIMENSION(var_mean)
LAMELLA_OVER_DIMENSION(std_mean)
#undef LAMELLA_OVER_DIMENSION

// A tensor of the C++ type of its numbers, whereas torch::tensor() has the dtypes of Python's.
using lamella::tensor;
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  constexpr ScalarType type = lamella::CppTypeToScalarType<T>::value;
  return lamella::tensor(values, options.has_dtype() ? options : options.dtype(type));
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return at::tensor(ArrayRef<T>(values), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return at::tensor(ArrayRef<T>(values), options);
}
template <lamella::detail::Number T>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return at::tensor(ArrayRef<T>(value), options);
}

// Functions that have another name in Lamella.
LAMELLA_LAZY Tensor frobenius_norm(const Tensor& self, OptionalIntArrayRef dim,
                                   bool keepdim = false) {
  return lamella::linalg_vector_norm(self, 2, dim, keepdim);
}
// Copies at once, so there is no memory that the first write copies.
LAMELLA_LAZY Tensor _lazy_clone(const Tensor& self) { return self.clone(); }
// Zeros in the memory of one element.
LAMELLA_LAZY Tensor _efficientzerotensor(IntArrayRef size, const TensorOptions& options = {}) {
  return lamella::zeros({}, options).expand(size);
}
// Two overloads whose calls differ by their default arguments; the result tells which one ran.
LAMELLA_LAZY Tensor _test_ambiguous_defaults(const Tensor&, int64_t a = 1, int64_t b = 1) {
  LAMELLA_CHECK(a == 1 && b == 1, "_test_ambiguous_defaults: expected 1 and 1");
  return lamella::tensor(1);
}
LAMELLA_LAZY Tensor _test_ambiguous_defaults(const Tensor&, int64_t a, std::string_view b) {
  LAMELLA_CHECK(a == 2 && b == "2", "_test_ambiguous_defaults: expected 2 and \"2\"");
  return lamella::tensor(2);
}
inline int64_t get_device(const Tensor& self) { return self.get_device(); }
inline bool is_same_size(const Tensor& self, const Tensor& other) {
  return self.is_same_size(other);
}
// Throws unless the tensor has exactly one element.
LAMELLA_LAZY bool is_nonzero(const Tensor& self) {
  LAMELLA_CHECK(self.numel() == 1, "is_nonzero: expected 'self' to have 1 element, got ",
                self.numel());
  return self.item().template to<bool>();
}
}  // namespace at
namespace torch {
using lamella::tensor;
}
namespace c10::impl::cow {
constexpr bool is_cow_data_ptr(const auto&) { return false; }
}  // namespace c10::impl::cow
