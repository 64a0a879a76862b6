// TensorSugar: the members of Tensor that are written by hand, in terms of its operators.
#pragma once
#include "lamella/api/tensor_autograd.h"
#include "lamella/core/accessor.h"
#include "lamella/core/ivalue.h"

namespace lamella {

// T is Tensor. Everything here is a template, so that each body sees all of T's methods.
template <class T>
class TensorSugar : public TensorAutograd<T> {
 public:
  TensorSugar() = default;
  explicit TensorSugar(const TensorBase& base) : TensorAutograd<T>(base) {}
  explicit TensorSugar(TensorBase&& base) noexcept : TensorAutograd<T>(std::move(base)) {}

  // Entry `index` along the first dimension, as a view. Negative indices count from the end.
  T operator[](int64_t index) const { return self().select(0, index); }

  T& operator+=(const T& other) { return self().add_(other); }
  T& operator+=(const Scalar& other) { return self().add_(other); }
  T& operator-=(const T& other) { return self().sub_(other); }
  T& operator-=(const Scalar& other) { return self().sub_(other); }
  T& operator*=(const T& other) { return self().mul_(other); }
  T& operator*=(const Scalar& other) { return self().mul_(other); }
  T& operator/=(const T& other) { return self().div_(other); }
  T& operator/=(const Scalar& other) { return self().div_(other); }
  T operator-() const { return self().neg(); }
  T operator~() const { return self().bitwise_not(); }

  T cpu() const { return self().to(TensorOptions(DeviceType::CPU)); }
  T toType(ScalarType type) const { return self().to(type); }

 private:
  const T& self() const { return static_cast<const T&>(*this); }
  T& self() { return static_cast<T&>(*this); }
};

}  // namespace lamella
