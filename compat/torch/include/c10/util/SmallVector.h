// c10::SmallVector, a std::vector here.
#pragma once
#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <vector>

namespace c10 {
template <class T>
class SmallVectorImpl : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  SmallVectorImpl() = default;
  SmallVectorImpl(const std::vector<T>& other) : std::vector<T>(other) {}  // NOLINT: implicit
  void append(std::size_t count, const T& value) { this->insert(this->end(), count, value); }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    this->insert(this->end(), first, last);
  }
  void append(std::initializer_list<T> values) { this->insert(this->end(), values); }
  void append(const SmallVectorImpl& other) { append(other.begin(), other.end()); }
  using std::vector<T>::assign;
  void assign(const SmallVectorImpl& other) { *this = other; }
  // The values of new entries are unspecified.
  void resize_for_overwrite(std::size_t count) { this->resize(count); }
  void pop_back_n(std::size_t count) { this->resize(this->size() - count); }
  void truncate(std::size_t count) { this->resize(count); }
  T pop_back_val() {
    T last = std::move(this->back());
    this->pop_back();
    return last;
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
