// irange: the integers of a range, to iterate over.
#pragma once
#include <type_traits>

namespace lamella {

template <class I>
class IntegerRange {
 public:
  class iterator {
   public:
    constexpr explicit iterator(I value) : value_(value) {}
    constexpr I operator*() const { return value_; }
    constexpr iterator& operator++() {
      ++value_;
      return *this;
    }
    constexpr bool operator==(const iterator& other) const = default;

   private:
    I value_;
  };
  constexpr IntegerRange(I first, I last) : first_(first), last_(last) {}
  constexpr iterator begin() const { return iterator(first_); }
  constexpr iterator end() const { return iterator(last_); }

 private:
  I first_, last_;
};

// first, first + 1, ..., last - 1; empty where last is not above first.
template <class I, class J>
  requires(std::is_integral_v<I> && std::is_integral_v<J>)
constexpr IntegerRange<J> irange(I first, J last) {
  J begin = static_cast<J>(first);
  return {begin, last > begin ? last : begin};
}
// 0, 1, ..., last - 1.
template <class I>
  requires(std::is_integral_v<I>)
constexpr IntegerRange<I> irange(I last) {
  return irange(I{0}, last);
}

}  // namespace lamella
