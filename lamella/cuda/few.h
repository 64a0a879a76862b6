// A short list without memory of its own: sizes, strides and operands of one call.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "lamella/core/array_ref.h"
#include "lamella/core/error.h"

namespace lamella::cuda {

// At most N values; more are an error of ours, as calls with more dimensions run on the CPU.
template <class T, size_t N>
class Few {
 public:
  Few() {}  // without zeros where none are asked for
  Few(std::initializer_list<T> values) : Few(values.begin(), values.end()) {}
  template <class It>
  Few(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  Few(size_t count, const T& value) { resize(count, value); }
  explicit Few(ArrayRef<T> values) : Few(values.begin(), values.end()) {}
  Few(const Few& other) : Few(other.begin(), other.end()) {}
  Few& operator=(const Few& other) {
    std::copy(other.begin(), other.end(), values_);
    size_ = other.size_;
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return values_; }
  T* end() { return values_ + size_; }
  const T* begin() const { return values_; }
  const T* end() const { return values_ + size_; }
  const T* data() const { return values_; }
  T& operator[](size_t i) { return values_[i]; }
  const T& operator[](size_t i) const { return values_[i]; }
  T& back() { return values_[size_ - 1]; }
  const T& front() const { return values_[0]; }
  const T& back() const { return values_[size_ - 1]; }
  operator ArrayRef<T>() const { return {values_, size_}; }

  void push_back(T value) {
    LAMELLA_INTERNAL_ASSERT(size_ < N);
    values_[size_++] = std::move(value);
  }
  void resize(size_t count, const T& value) {
    while (size_ < count) push_back(value);
    size_ = count;
  }
  void append(ArrayRef<T> values) {
    for (const T& value : values) push_back(value);
  }
  void push_front(size_t count, const T& value) {
    const size_t before = size_;
    resize(size_ + count, value);
    std::move_backward(values_, values_ + before, values_ + size_);
    std::fill_n(values_, count, value);
  }

 private:
  size_t size_ = 0;
  T values_[N];
};

}  // namespace lamella::cuda
