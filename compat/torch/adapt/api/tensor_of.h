// tensor(...): a tensor from numbers and initializer lists.
#pragma once
#include <initializer_list>

#include "lamella/api/functions.h"
#include "lamella/core/visit_dtype.h"

namespace lamella {
namespace detail {

// A number or a nested list of numbers, with its natural dtype.
class Numbers {
 public:
  template <NumberOperand T>
  Numbers(const T& number) : dtype_(natural<T>()), values_{Scalar(number)} {}  // NOLINT: implicit
  template <class T>
  Numbers(ArrayRef<T> list)  // NOLINT
      : dtype_(natural<T>()), sizes_{static_cast<int64_t>(list.size())} {
    for (const T& number : list) values_.push_back(Scalar(number));
  }
  template <class T>
  Numbers(const std::vector<T>& list)  // NOLINT
      : dtype_(natural<T>()), sizes_{static_cast<int64_t>(list.size())} {
    for (auto number : list) values_.push_back(Scalar(static_cast<T>(number)));
  }
  LAMELLA_LAZY Numbers(std::initializer_list<Numbers> parts)  // NOLINT
      : dtype_(kFloat), sizes_{static_cast<int64_t>(parts.size())} {
    if (parts.size() == 0) return;
    dtype_ = parts.begin()->dtype_;
    for (int64_t size : parts.begin()->sizes_) sizes_.push_back(size);
    for (const Numbers& part : parts) {
      LAMELLA_CHECK(part.sizes_ == parts.begin()->sizes_ && part.dtype_ == dtype_,
                    "tensor: expected lists of the same sizes and of the same kind of numbers");
      for (const Scalar& value : part.values_) values_.push_back(value);
    }
  }
  LAMELLA_LAZY Tensor make(const TensorOptions& options) const {
    TensorOptions on_cpu = TensorOptions(options.has_dtype() ? options.dtype() : dtype_);
    Tensor result = empty(sizes_, on_cpu);
    visit_stored(on_cpu.dtype(), "tensor", [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* data = result.data_ptr<T>();
      for (size_t i = 0; i < values_.size(); ++i) data[i] = values_[i].to<T>();
    });
    if (options.has_device()) result = result.to(TensorOptions(options.device()));
    if (options.requires_grad()) result.set_requires_grad(true);
    return result;
  }

 private:
  // Floating-point numbers have the default dtype, as in Python, and integers are int64.
  template <class T>
  static ScalarType natural() {
    if (std::is_same_v<T, bool>) return kBool;
    if (std::is_integral_v<T>) return kLong;
    if (is_complex_type_v<T>) return sizeof(T) == 16 ? kComplexDouble : kComplexFloat;
    return kFloat;
  }

  ScalarType dtype_;
  std::vector<int64_t> sizes_;
  std::vector<Scalar> values_;
};

}  // namespace detail

// tensor({{1, 2}, {3, 4}}), tensor(0.5), tensor(std::vector<int64_t>{1, 2}, kInt)
LAMELLA_LAZY inline Tensor tensor(const detail::Numbers& numbers,
                                  const TensorOptions& options = {}) {
  return numbers.make(options);
}

}  // namespace lamella
