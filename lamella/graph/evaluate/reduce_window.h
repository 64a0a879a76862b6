// Declares the rules of reduce-window, select-and-scatter and scan.
#pragma once
#include <optional>

#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

// A prefix reduction: a reduce-window whose windows all begin at the first element of the operand,
// or all end at the last one, along its only dimension with windows.
struct Prefix {
  int64_t dimension;
  bool from_last;
  // Output o reads the elements before, or with `from_last` from, the element o * stride + first.
  int64_t stride, first;
  // True if each element has an output, which reads the elements up to it, or from it on.
  bool is_scan;
};
std::optional<Prefix> prefix_of(const Instruction& reduce_window);
inline bool is_scan(const Instruction& reduce_window) {
  std::optional<Prefix> prefix = prefix_of(reduce_window);
  return prefix && prefix->is_scan;
}

Value evaluate_reduce_window(Step& step);
Value evaluate_select_and_scatter(Step& step);
Value evaluate_scan(Step& step);

}  // namespace lamella::hlo
