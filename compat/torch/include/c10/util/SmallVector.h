// c10::SmallVector, a std::vector here.
#pragma once
#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <iterator>
#include <vector>

namespace c10 {
template <class T>
class SmallVectorImpl : public std::vector<T> {
 public:
  using typename std::vector<T>::iterator;
  using typename std::vector<T>::const_iterator;
  using std::vector<T>::vector;
  SmallVectorImpl() = default;
  SmallVectorImpl(const std::vector<T>& other) : std::vector<T>(other) {}  // NOLINT: implicit
  SmallVectorImpl(std::vector<T>&& other) noexcept                         // NOLINT: implicit
      : std::vector<T>(std::move(other)) {}
  void append(std::size_t count, const T& value) { this->insert(this->end(), count, value); }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    this->insert(this->end(), first, last);
  }
  void append(std::initializer_list<T> values) { this->insert(this->end(), values); }
  void append(const SmallVectorImpl& other) { append(other.begin(), other.end()); }
  using std::vector<T>::assign;
  void assign(const SmallVectorImpl& other) { *this = other; }
  using std::vector<T>::insert;
  iterator insert(const_iterator at, std::size_t count, const T& value) {
    if (this->data() <= &value && &value < this->data() + this->size()) {
      return insert(at, count, T(value));
    }
    return place(at, count, [&](std::size_t) -> const T& { return value; });
  }
  template <std::random_access_iterator Iterator>
  iterator insert(const_iterator at, Iterator first, Iterator last) {
    return place(at, last - first, [&](std::size_t i) -> decltype(auto) { return first[i]; });
  }
  // The values of new entries are unspecified.
  void resize_for_overwrite(std::size_t count) { this->resize(count); }
  void pop_back_n(std::size_t count) { this->resize(this->size() - count); }
  void truncate(std::size_t count) { this->resize(count); }
  T pop_back_val() {
    T last = std::move(this->back());
    this->pop_back();
    return last;
  }

 private:
  // Assigns new values where entries were that move, and constructs only behind the old end.
  template <class Value>
  iterator place(const_iterator at, std::size_t count, const Value& value) {
    const std::size_t index = at - this->cbegin(), size = this->size(), after = size - index;
    const std::size_t moved = std::min(after, count);
    this->reserve(size + count);
    for (std::size_t i = moved; i < count; ++i) this->emplace_back(value(i));
    for (std::size_t i = size - moved; i < size; ++i) this->push_back(std::move((*this)[i]));
    std::move_backward(this->begin() + index, this->begin() + (size - moved), this->begin() + size);
    for (std::size_t i = 0; i < moved; ++i) (*this)[index + i] = value(i);
    return this->begin() + index;
  }
};
template <class T, unsigned N = 0>
class SmallVector : public SmallVectorImpl<T> {
 public:
  using SmallVectorImpl<T>::SmallVectorImpl;
};
template <class T>
lamella::ArrayRef<T> makeArrayRef(const SmallVectorImpl<T>& list) {
  return static_cast<const std::vector<T>&>(list);
}
template <class T, unsigned N>
lamella::ArrayRef<T> makeArrayRef(const SmallVector<T, N>& list) {
  return static_cast<const std::vector<T>&>(list);
}
}  // namespace c10
