// c10::enumerate: iterates over a range with indices.
#pragma once
#include <cstdint>
#include <iterator>
#include <utility>

#include <c10/lamella_names.h>

namespace c10 {
namespace detail {
template <class Iterator>
class Enumerator {
 public:
  // The result of *iterator; `index` is the first member, as structured bindings expect.
  struct Entry {
    const size_t index;
    decltype(*std::declval<Iterator&>()) element;
    const auto& operator*() const { return element; }
    auto& operator*() { return element; }
    auto* operator->() { return &element; }
  };
  explicit Enumerator(Iterator at) : at_(std::move(at)) {}
  Entry operator*() { return {index_, *at_}; }
  Enumerator& operator++() {
    ++at_;
    ++index_;
    return *this;
  }
  bool operator!=(const Enumerator& other) const { return at_ != other.at_; }
  bool operator==(const Enumerator& other) const { return at_ == other.at_; }

 private:
  Iterator at_;
  size_t index_ = 0;
};
template <class Range>
class Enumerated {
 public:
  explicit Enumerated(Range range) : range_(std::forward<Range>(range)) {}
  auto begin() { return Enumerator(std::begin(range_)); }
  auto end() { return Enumerator(std::end(range_)); }

 private:
  Range range_;
};
}  // namespace detail
template <class Range>
auto enumerate(Range&& range) {
  return detail::Enumerated<Range>(std::forward<Range>(range));
}
}  // namespace c10
