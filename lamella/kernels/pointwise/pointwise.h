// What the definitions of pointwise operators share.
#pragma once
#include "lamella/api/functions.h"
#include "lamella/kernels/cpu/pointwise_stubs.h"
#include "lamella/kernels/tensor_iterator.h"
#include "lamella/native_functions.h"
#include "lamella/structured_kernels.h"

// One overload of two tensors, or of a tensor and a number: meta promotes by `flags`, impl runs the
// stub. At namespace lamella.
#define LAMELLA_BINARY(op, flags, stub)                                    \
  LAMELLA_META_OF(op)(const Tensor& self, const Tensor& other) {           \
    build_binary(self, other, flags);                                      \
  }                                                                        \
  LAMELLA_IMPL_OF(op##_cpu)(const Tensor&, const Tensor&, const Tensor&) { \
    native::stub(device_type(), *this, nullptr);                           \
  }
#define LAMELLA_BINARY_TENSOR(op, flags, stub)                             \
  LAMELLA_META_OF2(op, Tensor)(const Tensor& self, const Tensor& other) {  \
    build_binary(self, other, flags);                                      \
  }                                                                        \
  LAMELLA_IMPL_OF(op##_cpu)(const Tensor&, const Tensor&, const Tensor&) { \
    native::stub(device_type(), *this, nullptr);                           \
  }
#define LAMELLA_BINARY_SCALAR(op, overload, flags, stub)                          \
  LAMELLA_META_OF2(op, overload)(const Tensor& self, const Scalar& other) {       \
    build_with_number(self, other, flags);                                        \
  }                                                                               \
  LAMELLA_IMPL_OF(op##_scalar_cpu)(const Tensor&, const Scalar&, const Tensor&) { \
    native::stub(device_type(), *this, nullptr);                                  \
  }
// A number and a tensor.
#define LAMELLA_BINARY_NUMBER(op, overload, flags, stub)                          \
  LAMELLA_META_OF2(op, overload)(const Scalar& self, const Tensor& other) {       \
    build_with_number(other, self, flags, true);                                  \
  }                                                                               \
  LAMELLA_IMPL_OF(op##_number_cpu)(const Scalar&, const Tensor&, const Tensor&) { \
    native::stub(device_type(), *this, nullptr);                                  \
  }
#define LAMELLA_UNARY(op, flags)                                        \
  LAMELLA_META_OF(op)(const Tensor& self) { build_unary(self, flags); } \
  LAMELLA_IMPL_OF(op##_cpu)(const Tensor&, const Tensor&) {             \
    native::op##_stub(device_type(), *this, nullptr);                   \
  }

// LAMELLA_META_FUNC and LAMELLA_IMPL_FUNC from namespace lamella.
#define LAMELLA_META_OF(name) void meta::structured_##name::meta
#define LAMELLA_META_OF2(name, overload) void meta::structured_##name##_##overload::meta
#define LAMELLA_IMPL_OF(name) void native::structured_##name::impl
