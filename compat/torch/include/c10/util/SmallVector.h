// c10::SmallVector, a std::vector here.
#pragma once
#include <c10/lamella_names.h>

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
}  // namespace c10
