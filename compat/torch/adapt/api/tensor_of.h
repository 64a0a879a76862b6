// tensor(...): a tensor from numbers and initializer lists.
#pragma once
#include <initializer_list>

#include "lamella/abi/operators.h"
#include "lamella/api/functions.h"
#include "lamella/core/visit_dtype.h"

namespace lamella {
namespace detail {

// A number or a nested list of numbers, with its natural dtype.
class Numbers {
 public:
  enum class Kind { kScalar, kInitList, kTensor };
  template <NumberOperand T>
  Numbers(const T& number)
      : dtype_(natural<T>()), kind_(Kind::kScalar), values_{Scalar(number)} {}  // NOLINT
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
      : dtype_(natural<float>()),
        kind_(Kind::kInitList),
        sizes_{static_cast<int64_t>(parts.size())} {
    if (parts.size() == 0) return;
    dtype_ = parts.begin()->dtype_;
    for (int64_t size : parts.begin()->sizes_) sizes_.push_back(size);
    for (const Numbers& part : parts) {
      LAMELLA_CHECK(part.sizes_ == parts.begin()->sizes_ && part.dtype_ == dtype_,
                    "tensor: expected lists of the same sizes and of the same kind of numbers");
      for (const Scalar& value : part.values_) values_.push_back(value);
    }
  }
  bool is_scalar() const { return kind_ == Kind::kScalar; }
  bool is_init_list() const { return kind_ == Kind::kInitList; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  IntArrayRef sizes() const { return sizes_; }
  ScalarType scalar_type() const { return dtype_; }
  const Scalar& scalar() const { return of_kind(Kind::kScalar, "a number").values_[0]; }
  // The numbers of an initializer list, one row after the other.
  ArrayRef<Scalar> init_list() const {
    return of_kind(Kind::kInitList, "a list in braces").values_;
  }
  // The tensor of a std::vector or an ArrayRef.
  LAMELLA_LAZY Tensor tensor() const {
    return of_kind(Kind::kTensor, "a vector").make(TensorOptions());
  }
  // Writes the numbers in braces.
  template <class Stream>
  friend Stream& operator<<(Stream& stream, const Numbers& numbers) {
    size_t at = 0;
    numbers.show(stream, 0, at);
    return stream;
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
  const Numbers& of_kind(Kind kind, const char* what) const {
    LAMELLA_CHECK(kind_ == kind, "tensor: expected ", what, ", got another kind of numbers");
    return *this;
  }
  template <class Stream>
  void show(Stream& stream, size_t depth, size_t& at) const {
    if (depth == sizes_.size()) {
      stream << values_[at++];
      return;
    }
    stream << "{";
    for (int64_t i = 0; i < sizes_[depth]; ++i) {
      if (i > 0) stream << ", ";
      show(stream, depth + 1, at);
    }
    stream << "}";
  }
  // float and double have the default dtype, as in Python, and integers of 4 bytes or more are
  // int64.
  template <class T>
  static ScalarType natural() {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      return static_cast<ScalarType>(lamella_default_dtype());
    } else if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
      return kLong;
    } else if constexpr (requires { CppTypeToScalarType<T>::value; }) {
      return CppTypeToScalarType<T>::value;
    } else {
      return is_complex_type_v<T> ? (sizeof(T) == 16 ? kComplexDouble : kComplexFloat) : kFloat;
    }
  }

  ScalarType dtype_;
  Kind kind_ = Kind::kTensor;
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
