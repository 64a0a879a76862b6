// ArrayRef: a borrowed run of values, and its optional form. Neither may outlive the values.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "lamella/core/error.h"

namespace lamella {

class Tensor;

template <class T>
class ArrayRef final {
 public:
  using value_type = T;
  using size_type = size_t;
  using iterator = const T*;
  using const_iterator = const T*;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}  // NOLINT
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* first, const T* last)
      : data_(first), size_(static_cast<size_t>(last - first)) {}
  template <class A>
  ArrayRef(const std::vector<T, A>& list)  // NOLINT
      : data_(list.data()), size_(list.size()) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to refer to");
  }
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}  // NOLINT
  template <size_t N>
  constexpr ArrayRef(const T (&list)[N]) : data_(list), size_(N) {}  // NOLINT
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  constexpr ArrayRef(const std::initializer_list<T>& list)  // NOLINT
      : data_(list.begin() == list.end() ? nullptr : list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop

  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* cbegin() const { return data_; }
  constexpr const T* cend() const { return data_ + size_; }
  constexpr std::reverse_iterator<const T*> rbegin() const {
    return std::reverse_iterator<const T*>(end());
  }
  constexpr std::reverse_iterator<const T*> rend() const {
    return std::reverse_iterator<const T*>(begin());
  }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& front() const { return at(0); }
  constexpr const T& back() const { return at(size_ - 1); }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& at(size_t i) const {
    LAMELLA_CHECK_INDEX(i < size_, "ArrayRef: expected an index below ", size_, ", got ", i);
    return data_[i];
  }
  // Elements first .. first + count - 1.
  constexpr ArrayRef slice(size_t first, size_t count) const {
    LAMELLA_CHECK_INDEX(first + count <= size_, "ArrayRef: expected a slice within ", size_,
                        " elements, got [", first, ", ", first + count, ")");
    return {data_ + first, count};
  }
  constexpr ArrayRef slice(size_t first) const {
    LAMELLA_CHECK_INDEX(first <= size_, "ArrayRef: expected a slice within ", size_,
                        " elements, got one from ", first);
    return {data_ + first, size_ - first};
  }
  constexpr bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }
  template <class Predicate>
  constexpr bool allMatch(const Predicate& predicate) const {
    for (size_t i = 0; i < size_; ++i) {
      if (!predicate(data_[i])) return false;
    }
    return true;
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
constexpr bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <class T, class A>
bool operator==(ArrayRef<T> a, const std::vector<T, A>& b) {
  return a.equals(ArrayRef<T>(b));
}
template <class T>
inline void append(std::string& out, ArrayRef<T> list) {
  detail::append_range(out, list.begin(), list.end());
}

using IntArrayRef = ArrayRef<int64_t>;
using TensorList = ArrayRef<Tensor>;

// A list that may be absent, made from anything that makes a list.
template <class T>
class OptionalArrayRef final {
 public:
  constexpr OptionalArrayRef() = default;
  constexpr OptionalArrayRef(std::nullopt_t) {}                              // NOLINT
  constexpr OptionalArrayRef(ArrayRef<T> list) : list_(list), has_(true) {}  // NOLINT
  template <class L>
  constexpr OptionalArrayRef(const std::optional<L>& list)  // NOLINT
      : list_(list.has_value() ? ArrayRef<T>(*list) : ArrayRef<T>()), has_(list.has_value()) {}
  constexpr OptionalArrayRef(const T& one) : list_(one), has_(true) {}       // NOLINT
  OptionalArrayRef(const std::vector<T>& list) : list_(list), has_(true) {}  // NOLINT
  template <size_t N>
  constexpr OptionalArrayRef(const std::array<T, N>& list) : list_(list), has_(true) {}  // NOLINT
  template <size_t N>
  constexpr OptionalArrayRef(const T (&list)[N]) : list_(list), has_(true) {}  // NOLINT
  constexpr OptionalArrayRef(const std::initializer_list<T>& list)             // NOLINT
      : list_(list), has_(true) {}

  constexpr bool has_value() const { return has_; }
  constexpr explicit operator bool() const { return has_; }
  constexpr const ArrayRef<T>& value() const {
    LAMELLA_CHECK(has_, "OptionalArrayRef: expected a list, got None");
    return list_;
  }
  constexpr const ArrayRef<T>& operator*() const { return list_; }
  constexpr const ArrayRef<T>* operator->() const { return &list_; }
  constexpr ArrayRef<T> value_or(ArrayRef<T> other) const { return has_ ? list_ : other; }

 private:
  ArrayRef<T> list_;
  bool has_ = false;
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

template <class T>
inline void append(std::string& out, const OptionalArrayRef<T>& list) {
  if (list.has_value()) {
    append(out, *list);
  } else {
    append(out, "None");
  }
}

}  // namespace lamella
