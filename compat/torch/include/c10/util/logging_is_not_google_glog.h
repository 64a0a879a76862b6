// operator<< for vectors, maps, sets and pairs, as in PyTorch builds without glog: elements
// separated by spaces, at most a hundred of them; pairs as (first, second).
#pragma once
#include <torch/standard_headers.h>

namespace c10 {
template <class Iterator>
void PrintSequence(std::ostream& out, Iterator begin, Iterator end);
}  // namespace c10

// Declared in std, so that argument-dependent lookup finds them.
namespace std {
template <class First, class Second>
std::ostream& operator<<(std::ostream& out, const std::pair<First, Second>& pair) {
  return out << '(' << pair.first << ", " << pair.second << ')';
}
#define LAMELLA_PRINTED(container)                                                \
  template <class... T>                                                           \
  std::ostream& operator<<(std::ostream& out, const std::container<T...>& list) { \
    c10::PrintSequence(out, list.begin(), list.end());                            \
    return out;                                                                   \
  }
LAMELLA_PRINTED(vector)
LAMELLA_PRINTED(map)
LAMELLA_PRINTED(set)
#undef LAMELLA_PRINTED
}  // namespace std

namespace c10 {
template <class Iterator>
void PrintSequence(std::ostream& out, Iterator begin, Iterator end) {
  size_t count = 0;
  for (; begin != end; ++begin) {
    if (count > 0) out << ' ';
    if (count++ == 100) {
      out << "...";
      return;
    }
    out << *begin;
  }
}
}  // namespace c10
